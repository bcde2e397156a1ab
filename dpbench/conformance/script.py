"""A script that shows one wrong verdict with torch and the implementation, without the kit."""

from __future__ import annotations

from pathlib import Path

from dpbench.cases import Case
from dpbench.clipping import Clip
from dpbench.conformance.judge import clip_for
from dpbench.conformance.source import standalone
from dpbench.conformance.subject import SEED, Subject
from dpbench.conformance.verdict import Verdict
from dpbench.parity import TOLERANCE

HEAD = '''"""{reason}

{implementation} on the case {case}: {error}.
Run: python {name}
"""

from __future__ import annotations

{imports}

import dpbench


{source}
'''

LOOP = """
def loop(model, losses, call):
    \"\"\"The definition: one forward and one backward for each example, clipped, and added up.\"\"\"
    parameters = {{n: p for n, p in model.named_parameters() if p.requires_grad}}
    B = len(next(iter(call.batch.values())))
    rows = list(range(B)) if call.unit is None else call.unit.tolist()
    total = {{i: {{n: torch.zeros_like(p) for n, p in parameters.items()}} for i in range(max(rows, default=-1) + 1)}}
    for i in range(B):
        loss = losses(model, {{key: value[i : i + 1] for key, value in call.batch.items()}}).sum()
        loss = loss * (1.0 if call.mask is None else float(call.mask[i]))
        grads = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
        for n, g in zip(parameters, grads):
            if g is not None:
                total[rows[i]][n] += g
    sums = {{n: torch.zeros_like(p) for n, p in parameters.items()}}
    norms = []
    for gradients in total.values():
        squares = [sum(g.pow(2).sum() for n, g in gradients.items() if GROUP[n] == k) for k in range(GROUPS)]
        norms.append(sum(squares).sqrt())
        for n, g in gradients.items():
            norm = squares[GROUP[n]].sqrt() + STABILITY
            sums[n] += g * (R / GROUPS**0.5 / norm).clamp(max=1.0)
    return norms, sums


def relative(got, true, whole):
    \"\"\"The error, of a gradient that is zero but for rounding relative to the whole.\"\"\"
    size = float(true.norm())
    return float((got - true).norm()) / (size if size > 1e-12 * whole else whole)


R, STABILITY = {R!r}, {stability!r}
GROUP, GROUPS = {group!r}, {groups}  # the clipping group of each parameter

torch.manual_seed({seed})
problem = {build}()
model, losses = problem.model.double(), problem.losses
for call in problem.calls:
    call.batch = {{key: v.double() if v.is_floating_point() else v for key, v in call.batch.items()}}
expected = [loop(model, losses, call) for call in problem.calls]

clip = dpbench.Clip(max_norm=R, style={style!r}, stability=STABILITY)
step = dpbench.prepare({implementation!r}, model, losses, clip)
worst = 0.0
for number, (call, (norms, sums)) in enumerate(zip(problem.calls, expected), 1):
    out = step(call.batch, unit=call.unit, mask=call.mask)
    print(f"call {{number}}")
    if GROUPS == 1 and out.norms is not None:
        lengths = torch.stack(norms) if norms else torch.zeros(0, dtype=torch.float64)
        error = float("inf")
        if out.norms.shape == lengths.shape:
            error = float((out.norms - lengths).norm() / lengths.norm().clamp(min=1e-300))
        worst = max(worst, error) if error == error else float("inf")
        print("  norms    ", [f"{{float(n):.6g}}" for n in out.norms], "expected", [f"{{float(n):.6g}}" for n in norms])
    whole = float(sum(g.pow(2).sum() for g in sums.values())) ** 0.5 or 1.0
    for n, true in sums.items():
        error = relative(out.grads[n], true, whole) if n in out.grads else float("inf")
        worst = max(worst, error) if error == error else float("inf")
        print(f"  {{n:30}} relative error {{error:.2e}}")
raise SystemExit(not worst <= {tolerance!r})
"""


def can_show(case: Case) -> bool:
    """Whether the loop of a script is the truth: not where the forward draws, autocasts, or mixes examples."""
    problem = Subject(case.build).problem()
    return not (problem.random or problem.native or case.refused)


def script(case: Case, implementation: str, verdict: Verdict, name: str) -> str:
    """The text; it exits with 1 as long as the gradient is wrong."""
    subject = Subject(case.build)
    clip = clip_for(subject, implementation)
    names = [n for n, p in subject.problem().model.named_parameters() if p.requires_grad]
    groups = clip.groups(names)
    error = verdict.message or f"off by {verdict.error:.3g} (relative), most in {verdict.worst}"
    imports, source = standalone(case.build)
    head = HEAD.format(
        reason=case.reason,
        implementation=implementation,
        case=case.name,
        error=error,
        name=name,
        imports="\n".join(sorted(imports | {"import torch"}, key=_order)),
        source=source,
    )
    body = LOOP.format(
        R=clip.max_norm,
        stability=clip.stability,
        group=dict(groups.of),
        groups=groups.count,
        seed=SEED,
        build=case.build.__name__,
        implementation=implementation,
        style=_style(clip),
        tolerance=TOLERANCE,
    )
    return head + "\n" + body


def _order(statement: str) -> tuple[bool, str]:
    """Torch after the standard library."""
    return "torch" in statement, statement


def _style(clip: Clip) -> object:
    return clip.style if isinstance(clip.style, str) else dict(clip.style)


def write(case: Case, implementation: str, verdict: Verdict, directory: Path) -> Path:
    """Put it into ``directory``, named after both."""
    plain = "-".join((implementation, verdict.check)).replace("/", "-").replace(":", "-").replace(" ", "-")
    path = directory / f"{plain.strip('-.')}.py".replace(".py.py", ".py")
    directory.mkdir(parents=True, exist_ok=True)
    path.write_text(script(case, implementation, verdict, path.name), encoding="utf-8")
    return path
