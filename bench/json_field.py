#!/usr/bin/env python3
"""json_field.py KEY FILE - prints one value of a JSON file; "a.b" is b within a.

A file of several lines of JSON (--metrics) gives the value of its last line.
"""
import json
import sys


def main():
    key, path = sys.argv[1:3]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        value = json.loads(text)
    except ValueError:
        value = json.loads(text.strip().splitlines()[-1])
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            sys.exit(f"{path}: no {key}")
        value = value[part]
    print(value)


if __name__ == "__main__":
    main()
