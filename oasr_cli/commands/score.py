"""`oasr score`: files in, matched by id, error rates out."""

from __future__ import annotations

from oasr.errors import ManifestError, OptionsError

from oasr_cli import arguments as flag
from oasr_cli import console

POLICIES = ("deletions", "leave-out")


def score(
    hypotheses: flag.Hypotheses,
    ref: flag.Ref = None,
    reference_field: flag.ScoredField = None,
    metric: flag.Metric = "auto",
    normalizer: flag.Normalizer = "auto",
    language: flag.TextLanguage = None,
    failed: flag.FailedRows = "deletions",
    bootstrap: flag.Bootstrap = 10_000,
    seed: flag.DrawSeed = 0,
    by: flag.By = None,
    worst: flag.Worst = 5,
    json: flag.AsJson = False,
) -> None:
    """Score transcripts against references: word or character error rate.

    Rows are matched by id; a missing or an extra id is an error. Of two files, the second is compared
    with the first. Exit code: 0 scored, 2 the files or flags cannot be used.
    """
    from oasr.manifest.transcripts import read_hypotheses, read_references
    from oasr.scoring.bootstrap import Resampling
    from oasr.scoring.report import RuleChoice, check_keys, score_samples
    from oasr.scoring.samples import match

    from oasr_cli.score_report import Report, System
    from oasr_cli.score_view import show

    _check(hypotheses, failed, worst)
    choice = RuleChoice(_unless_auto(normalizer), _unless_auto(metric), language)
    resampling = Resampling(bootstrap, seed) if bootstrap else None
    files = [read_hypotheses(path, reference_field) for path in hypotheses]
    references = None if ref is None else read_references(ref, reference_field)
    samples, left_out = match(files, references, failed == "leave-out")
    if not samples:
        raise ManifestError(f"{hypotheses[0]}: every row failed and is left out; nothing is left to score")
    keys = [key.strip() for value in by or () for key in value.split(",")]
    check_keys(samples, keys)
    with console.busy("scoring"):
        systems = [System(file.path, score_samples(samples, i, choice)) for i, file in enumerate(files)]
    report = Report(systems, left_out, keys, worst, resampling)
    if json:
        console.result_json(report.as_json())
    else:
        show(report)


def _check(hypotheses: list[str], failed: str, worst: int) -> None:
    """Raise OptionsError for what no run could use."""
    if len(hypotheses) > 2:
        raise OptionsError(f"expected one hypothesis file, or two to compare, got {len(hypotheses)}")
    if failed not in POLICIES:
        raise OptionsError(f"--failed: expected {' or '.join(POLICIES)}, got {failed!r}")
    if worst < 0:
        raise OptionsError(f"--worst: expected an integer >= 0, got {worst}")


def _unless_auto(name: str) -> str | None:
    return None if name == "auto" else name
