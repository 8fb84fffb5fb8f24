# SPDX-License-Identifier: Apache-2.0
"""The promises, the measurements, and whether these keep to those."""
import json


class Report:
    """Prints a line a promise, or a line of JSON; knows whether all were kept."""

    def __init__(self, as_json):
        self.as_json = as_json
        self.kept = self.broken = 0

    def section(self, title):
        if not self.as_json:
            print(f"\n{title}", flush=True)

    def result(self, result):
        """One measured result, as the program printed it."""
        if self.as_json:
            print(json.dumps(result), flush=True)

    def note(self, text):
        if not self.as_json:
            print(f"  {text}", flush=True)

    def at_least(self, what, figure, target, unit="x"):
        self._line(what, figure, ">=", target, unit, figure >= target)

    def at_most(self, what, figure, target, unit="x"):
        self._line(what, figure, "<=", target, unit, figure <= target)

    def _line(self, what, figure, sign, target, unit, kept):
        self.kept += kept
        self.broken += not kept
        verdict = "pass" if kept else "FALLS SHORT"
        if self.as_json:
            print(json.dumps({"what": what, "figure": round(figure, 4), "sign": sign, "target": target, "unit": unit,
                              "kept": kept}), flush=True)
        else:
            print(f"  {what:<66}{figure:>9.3f} {unit:<3} {sign} {target:<6g} {verdict}", flush=True)


def words(bytes_):
    """65536 → 64 KB"""
    for factor, unit in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if bytes_ >= factor and bytes_ % factor == 0:
            return f"{bytes_ // factor} {unit}"
    return f"{bytes_} B"
