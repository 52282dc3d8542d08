#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every libFuzzer target for some seconds on seeds that the plain build writes.

The last line is `N passed, N failed`.  A finding is kept in OUT/findings/<format>/, and the command
that replays it is printed."""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, help="output tree of the libFuzzer build")
    parser.add_argument("--plain", required=True, help="tree of the plain build that writes seeds")
    parser.add_argument("--seconds", type=int, default=60, help="seconds per target")
    parser.add_argument("names", nargs="*", help="only targets with one of these in their name")
    options = parser.parse_args()
    out, failed, passed = pathlib.Path(options.out), 0, 0
    for source in sorted((ROOT / "tests/fuzz").glob("*_fuzz.cc")):
        name = "fuzz-" + source.stem.removesuffix("_fuzz").replace("_", "-")
        if options.names and not any(n in name for n in options.names):
            continue
        corpus, findings = out / "corpus" / name, out / "findings" / name
        corpus.mkdir(parents=True, exist_ok=True)
        findings.mkdir(parents=True, exist_ok=True)
        plain = pathlib.Path(options.plain) / name
        if not plain.exists():
            subprocess.run(["make", "--no-print-directory", f"OUT={options.plain}", str(plain)],
                           cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        subprocess.run([plain, "--write-seeds", corpus], check=True)
        command = [str(out / name), str(corpus), f"-max_total_time={options.seconds}",
                   "-timeout=20", "-rss_limit_mb=4096", f"-artifact_prefix={findings}/",
                   "-print_final_stats=1", "-max_len=16384"]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, errors="replace", cwd=ROOT)
        runs = re.search(r"number_of_executed_units: (\d+)", done.stderr)
        cover = re.findall(r"cov: (\d+)", done.stderr)
        print(f"  {name:<24} {runs[1] if runs else '?':>10} runs, coverage "
              f"{cover[-1] if cover else '?'}, {'ok' if done.returncode == 0 else 'FINDING'}",
              flush=True)
        if done.returncode == 0:
            passed += 1
            continue
        failed += 1
        (findings / "log").write_text(done.stderr)
        for artifact in sorted(findings.glob("*-*")):
            print(f"  replay: {out / name} {artifact}")
        print("\n".join("  | " + line for line in done.stderr.splitlines()[-40:]))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
