import dpbench
from dpbench.frame import COLUMNS
from dpbench.runner import Progress


def test_run_gives_a_row_for_each_cell_and_tells_of_everything(tmp_path):
    seen = []
    frame = dpbench.run(
        model="synthetic:mlp(width=8,depth=2)",
        batch=[4, 8],
        implementation="bk",
        threads=1,
        rounds=1,
        budget_s=0.01,
        results=tmp_path,
        on_event=seen.append,
    )
    assert list(frame.columns) == list(COLUMNS)
    assert list(zip(frame.implementation, frame.batch, strict=True)) == [
        ("nonprivate", 4),
        ("bk", 4),
        ("nonprivate", 8),
        ("bk", 8),
    ]
    assert (frame.outcome == "ok").all()
    assert frame.parity_passed.all()
    assert (frame.seconds > 0).all()
    assert any(isinstance(event, Progress) for event in seen)
    assert dpbench.load(tmp_path).equals(frame)
