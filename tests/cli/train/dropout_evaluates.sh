# With dropout, accuracies come from evaluations, every K epochs, and are null between.
small_store
gnnstream train store --model sage --hidden 8 --epochs 6 --dropout 0.5 --eval-every 3 --metrics m.jsonl >result
[ "$(grep -c '"train_acc": null, "valid_acc": null, "test_acc": null' m.jsonl)" = 4 ] || die "$(<m.jsonl)"
sed -n '3p;6p' m.jsonl | grep -c null && die "epochs 3 and 6 were not evaluated: $(<m.jsonl)"
gnnstream train store --model sage --hidden 8 --epochs 2 --dropout 0.5 --eval-every 0 --metrics m.jsonl >result
[ "$(grep -c '"test_acc": null' m.jsonl)" = 2 ] || die "$(<m.jsonl)"
grep -q '^test ' result || die "no final accuracy: $(<result)"
