#!/usr/bin/env python3
"""launches_together.py - of the chunks that have come, how many should one launch take?

A model of a streamed edge pass, not a measurement: 512 chunks come by copies, one behind the other, to the places of a
ring, and a place is free again when the launch that has its chunk is over. As in src/exec, the thread that launches
asks for up to three launches ahead; where no chunk is there it waits for its oldest launch, and with none under way for
the next chunk; it sees either some microseconds late. A launch takes 3 us to ask for and 5 us beside its chunks' times,
and times of copies and kernels vary by 30 %. Printed: milliseconds and launches for taking one chunk, half of those
that are there (rounded up), or all, and how all compares with half over a grid of places and times.
"""
import heapq
import random

CHUNKS, ASK, LAUNCH, AHEAD, VARY = 512, 3, 5, 3, 0.3
TAKE = {"one": lambda n: 1, "half": lambda n: (n + 1) // 2, "all": lambda n: n}


class Pass:
    def __init__(self, places, copy, kernel, late):
        self.random = random.Random(1)
        self.copy, self.kernel, self.late = copy, kernel, late
        self.free = [0.0] * places  # when each place is free to be copied to
        self.come, self.copied = [], 0.0  # when each chunk is there; when the last copy ends
        self.ahead = []  # (end, chunks) of launches under way
        self.now = 0.0
        self.copy_on()

    def vary(self):
        return 1 + VARY * (2 * self.random.random() - 1)

    def copy_on(self):
        while len(self.come) < CHUNKS and self.free:
            self.copied = max(self.copied, heapq.heappop(self.free)) + self.copy * self.vary()
            self.come.append(self.copied)

    def retire(self):
        end, chunks = self.ahead.pop(0)
        if end > self.now:
            self.now = end + self.late
        for _ in range(chunks):
            heapq.heappush(self.free, self.now)
        self.copy_on()

    def run(self, take):
        taken, launches, gpu = 0, 0, 0.0
        while taken < CHUNKS:
            while self.ahead and self.ahead[0][0] <= self.now or len(self.ahead) == AHEAD:
                self.retire()
            there = sum(at <= self.now for at in self.come[taken:])
            if there == 0 and self.ahead:
                self.retire()
            elif there == 0:
                self.now = self.come[taken] + self.late
            else:
                chunks = take(there)
                self.now += ASK
                gpu = max(gpu, self.now) + LAUNCH + chunks * self.kernel * self.vary()
                self.ahead.append((gpu, chunks))
                taken += chunks
                launches += 1
        return gpu / 1e3, launches


def main():
    print("us late, us a copy, us a kernel, places: ms and launches for " + ", ".join(TAKE))
    for late in (5, 20, 60):
        for copy, kernel in ((60, 21), (21, 21), (21, 40), (3, 10)):
            for places in (4, 8, 32):
                runs = (Pass(places, copy, kernel, late).run(take) for take in TAKE.values())
                print(f"{late:3} {copy:3} {kernel:3} {places:3}:" + "".join(f"  {ms:6.2f} {n:4}" for ms, n in runs))
    for late in (5, 20, 60):
        ratio = sorted(Pass(places, copy, kernel, late).run(TAKE["all"])[0] /
                       Pass(places, copy, kernel, late).run(TAKE["half"])[0]
                       for places in (2, 4, 8, 16, 32) for copy in (3, 10, 20, 40, 80)
                       for kernel in (2, 5, 10, 20, 40, 80))
        print(f"{late:3} us late, all / half: {ratio[0]:.2f} to {ratio[-1]:.2f}, mean {sum(ratio) / len(ratio):.3f}")


main()
