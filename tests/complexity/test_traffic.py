"""Bytes that operators move, each worked by hand: float32 has 4 of them, an index 8."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from dpbench.complexity.traffic import halves, tensors, touched, traffic


class Moved(TorchDispatchMode):
    """Lists every operator that is called, with its bytes."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.calls.append(
            (
                func._overloadpacket.__name__,
                traffic(func, args, kwargs or {}, [*tensors(args), *tensors(kwargs or {})], tensors(out)),
            )
        )
        return out


def calls(step):
    with Moved() as moved:
        step()
    return moved.calls


def only(step):
    """The bytes of what calls one operator."""
    ((_, found),) = calls(step)
    return found


X, Y, W = torch.rand(6, 4), torch.rand(6, 4), torch.rand(4, 5)
TABLE, IDS, ROWS = torch.rand(1000, 8), torch.tensor([1, 5, 9]), torch.rand(3, 8)
B = 4
"""Bytes of an element of all of these but IDS."""


def copies(*tensors):
    """For steps that write in place."""
    return [t.clone() for t in tensors]


def test_a_product_reads_both_operands_and_writes_its_result():
    assert only(lambda: torch.mm(X, W)) == B * (6 * 4 + 4 * 5 + 6 * 5)


def test_a_product_with_a_bias_reads_that_too():
    bias = torch.rand(5)
    assert only(lambda: torch.addmm(bias, X, W)) == B * (5 + 6 * 4 + 4 * 5 + 6 * 5)


def test_a_batch_of_products_reads_every_one_of_them():
    a, b = torch.rand(3, 6, 4), torch.rand(3, 4, 5)
    assert only(lambda: torch.bmm(a, b)) == 3 * only(lambda: torch.mm(X, W))


def test_elementwise_work_reads_what_differs_and_writes_once():
    assert only(lambda: X * Y) == B * 3 * 24
    assert only(lambda: X.exp()) == B * 2 * 24


def test_an_operand_that_comes_twice_is_read_once():
    assert only(lambda: X * X) == B * 2 * 24
    assert only(lambda: torch.cat([X, X])) == B * (24 + 48)


def test_a_reduction_writes_what_is_left():
    assert only(lambda: X.sum(0)) == B * (24 + 4)


def test_a_cast_reads_one_width_and_writes_the_other():
    assert only(lambda: X.to(torch.bfloat16)) == 24 * (4 + 2)


VIEWS = {
    "view": lambda: X.view(24),
    "t": lambda: X.t(),
    "expand": lambda: X.expand(3, 6, 4),
    "detach": lambda: X.detach(),
    "slice": lambda: X[1:3],
    "select": lambda: X[0],
    "split": lambda: X.split(2),
    "_unsafe_view": lambda: torch.ops.aten._unsafe_view(X, [24]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_move_nothing(name):
    assert calls(VIEWS[name]) == [(name, 0)]


def test_a_matmul_of_three_dimensions_moves_what_its_product_does():
    x = torch.rand(2, 3, 4)
    found = calls(lambda: x @ W)
    assert "_unsafe_view" in dict(found)
    assert [call for call in found if call[1]] == [("mm", only(lambda: torch.mm(X, W)))]


EMPTY = {
    "empty": lambda: torch.empty(9),
    "empty_like": lambda: torch.empty_like(X),
    "empty_strided": lambda: torch.empty_strided((2,), (1,)),
    "new_empty": lambda: X.new_empty(9),
    "resize_": lambda: torch.empty(2).resize_(9),
}


@pytest.mark.parametrize("name", EMPTY)
def test_memory_that_is_asked_for_is_neither_read_nor_written(name):
    assert calls(EMPTY[name])[-1] == (name, 0)


def test_what_is_filled_with_a_number_is_written_and_nothing_is_read():
    assert only(lambda: torch.zeros(9)) == only(lambda: torch.ones(9)) == only(lambda: torch.full((9,), 2.0)) == 9 * B
    assert only(lambda: torch.arange(9)) == 9 * 8


LIKE = {
    "zeros_like": lambda: torch.zeros_like(X),
    "ones_like": lambda: torch.ones_like(X),
    "full_like": lambda: torch.full_like(X, 2.0),
    "rand_like": lambda: torch.rand_like(X),
    "randn_like": lambda: torch.randn_like(X),
    "new_zeros": lambda: X.new_zeros(24),
    "new_ones": lambda: X.new_ones(24),
    "new_full": lambda: X.new_full((24,), 2.0),
}


@pytest.mark.parametrize("name", LIKE)
def test_what_only_tells_the_shape_is_not_read(name):
    assert calls(LIKE[name]) == [(name, 24 * B)]


def test_adding_in_place_reads_both_and_writes_itself():
    (x,) = copies(X)
    assert only(lambda: x.add_(Y)) == B * 3 * 24
    assert only(lambda: x.mul_(2)) == B * 2 * 24
    assert only(lambda: x.add_(x)) == B * 2 * 24


def test_in_place_on_a_part_moves_that_part():
    (x,) = copies(X)
    part = x[:2]
    assert only(lambda: part.mul_(2)) == B * 2 * 8


def test_copying_over_a_tensor_does_not_read_it():
    x, half = X.clone(), Y.to(torch.bfloat16)
    assert only(lambda: x.copy_(Y)) == B * 2 * 24
    assert only(lambda: x.copy_(half)) == 24 * (2 + 4)


OVERWRITING = {
    "zero_": lambda x: x.zero_(),
    "fill_": lambda x: x.fill_(2),
    "normal_": lambda x: x.normal_(),
    "uniform_": lambda x: x.uniform_(),
    "bernoulli_": lambda x: x.bernoulli_(0.5),
}


@pytest.mark.parametrize("name", OVERWRITING)
def test_what_is_overwritten_is_not_read(name):
    (x,) = copies(X)
    assert calls(lambda: OVERWRITING[name](x)) == [(name, 24 * B)]


def test_an_exponential_draw_does_not_read_what_it_overwrites():
    (x,) = copies(X)
    assert only(lambda: x.exponential_()) == 24 * B


def test_the_tensor_that_takes_a_result_is_not_read():
    out = torch.empty(6, 5)
    assert only(lambda: torch.mm(X, W, out=out)) == only(lambda: torch.mm(X, W))


def test_an_expanded_operand_is_read_once():
    row = torch.rand(4)
    expanded = row.expand(6, 4)
    assert only(lambda: X + expanded) == B * (24 + 4 + 24)
    assert only(lambda: X + row) == B * (24 + 4 + 24)
    assert only(lambda: expanded.clone()) == B * (4 + 24)


def test_a_batch_of_one_expanded_matrix_reads_that_matrix():
    a, b = torch.rand(3, 6, 4), W.expand(3, 4, 5)
    assert only(lambda: torch.bmm(a, b)) == B * (3 * 6 * 4 + 4 * 5 + 3 * 6 * 5)


def test_nothing_is_touched_of_a_tensor_without_elements():
    assert touched(torch.empty(0, 4)) == touched(torch.empty(0).expand(3, 0)) == 0
    assert touched(torch.tensor(1.0)) == touched(torch.tensor(1.0).expand(7, 7)) == 4


LOOKUPS = {
    "embedding": lambda: F.embedding(IDS, TABLE),
    "index_select": lambda: TABLE.index_select(0, IDS),
    "index": lambda: TABLE[IDS],
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_a_lookup_reads_the_rows_and_the_ids_alone(name):
    assert calls(LOOKUPS[name]) == [(name, 3 * 8 + B * 2 * 3 * 8)]


def test_a_gather_reads_what_it_gives():
    ids = torch.zeros(6, 1, dtype=torch.int64)
    assert only(lambda: X.gather(1, ids)) == 6 * 8 + B * 2 * 6


ADDITIONS = {
    "index_add_": lambda table: table.index_add_(0, IDS, ROWS),
    "index_put_": lambda table: table.index_put_((IDS,), ROWS, accumulate=True),
}


@pytest.mark.parametrize("name", ADDITIONS)
def test_adding_to_rows_of_a_big_table_touches_those_alone(name):
    (table,) = copies(TABLE)
    assert calls(lambda: ADDITIONS[name](table)) == [(name, 3 * 8 + B * 3 * (3 * 8))]


def test_scattered_additions_touch_what_is_added():
    (table,) = copies(TABLE)
    ids = IDS[:, None].repeat(1, 8)
    assert only(lambda: table.scatter_add_(0, ids, ROWS)) == 24 * 8 + B * 3 * 24


def test_out_of_place_the_whole_table_is_copied():
    assert only(lambda: TABLE.index_add(0, IDS, ROWS)) == 3 * 8 + B * (24 + 2 * 8000)


def test_scattering_a_number_touches_elements_of_the_table():
    (x,) = copies(X)
    ids = torch.zeros(6, 1, dtype=torch.int64)
    assert only(lambda: x.scatter_(1, ids, 1.0)) <= 6 * 8 + B * 2 * 6


def test_a_number_put_into_rows_is_written_to_all_of_them():
    (table,) = copies(TABLE)
    value = torch.tensor(0.0)
    assert only(lambda: table.index_put_((IDS,), value)) >= 3 * 8 + B * 3 * 8


def test_the_gradient_of_an_embedding_writes_the_whole_table():
    weight = TABLE.clone().requires_grad_()
    found = dict(calls(lambda: torch.autograd.grad(F.embedding(IDS, weight), weight, ROWS)))
    assert found["embedding_dense_backward"] == 3 * 8 + B * (3 * 8 + 1000 * 8)


def test_the_loss_of_labels_reads_one_entry_of_each_example():
    logs, labels = torch.rand(6, 1000), torch.zeros(6, dtype=torch.int64)
    assert only(lambda: F.nll_loss(logs, labels)) <= 6 * 8 + B * 2 * 6


def test_lists_of_tensors_move_what_their_tensors_would_one_by_one():
    x, w = copies(X, W)
    others = [torch.rand_like(X), torch.rand_like(W)]
    assert calls(lambda: torch._foreach_add_([x, w], others)) == [("_foreach_add_", B * 3 * (24 + 20))]
    assert calls(lambda: torch._foreach_mul_([x, w], 0.5)) == [("_foreach_mul_", B * 2 * (24 + 20))]
    assert calls(lambda: torch._foreach_mul([x, w], 0.5)) == [("_foreach_mul", B * 2 * (24 + 20))]
    assert calls(lambda: torch._foreach_addcmul_([x], [x], [Y])) == [("_foreach_addcmul_", B * 3 * 24)]


@pytest.mark.parametrize("name", ["_foreach_zero_", "_foreach_copy_"])
def test_lists_of_tensors_that_are_overwritten_are_not_read(name):
    x, w = copies(X, W)
    given = ([x, w],) if name == "_foreach_zero_" else ([x, w], [Y, torch.rand_like(W)])
    assert only(lambda: getattr(torch, name)(*given)) == B * len(given) * (24 + 20)


def test_a_norm_reads_its_input_and_writes_its_output_and_statistics():
    assert only(lambda: torch.native_layer_norm(X, [4], None, None, 1e-5)) == B * (24 + 24 + 2 * 6)


@pytest.mark.parametrize(
    ("wanted", "kernels"),
    [
        ([True, True, True], [[True, False, False], [False, True, True]]),
        ([False, True, False], [[False, True, False]]),
        ([True, False, False], [[True, False, False]]),
        ([False, False, True], [[False, False, True]]),
        ([False, False, False], []),
    ],
)
def test_a_convolution_backwards_is_a_kernel_for_each_gradient(wanted, kernels):
    assert halves(wanted) == kernels
