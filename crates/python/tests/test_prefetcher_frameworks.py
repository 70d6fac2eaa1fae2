"""CudaPrefetcher inside torchdata, Accelerate, transformers and Lightning, all of them real, on a simulated device."""

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
torchdata = pytest.importorskip("torchdata.stateful_dataloader")
accelerate = pytest.importorskip("accelerate")
transformers = pytest.importorskip("transformers")

import pinlane
from pinlane.torch import CudaPrefetcher, prefetch_prepared


class Stream(torch.utils.data.IterableDataset):
    """Numbers, with a state that is one object and changes."""

    def __init__(self, length=12):
        self.length = length
        self.state = {"next": 0}

    def __iter__(self):
        while self.state["next"] < self.length:
            self.state["next"] += 1
            yield self.state["next"] - 1
        self.state["next"] = 0

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = dict(state)


def stateful(workers=0, dataset=None, **options):
    dataset = list(range(12)) if dataset is None else dataset
    options = {"batch_size": 2, "num_workers": workers, **options}
    return torchdata.StatefulDataLoader(dataset, **options)


def numbers(batches):
    return [batch.numpy().tolist() for batch in batches]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_resuming_loses_no_batch(workers, shuffle):
    def make():
        generator = torch.Generator().manual_seed(7)
        return stateful(workers, shuffle=shuffle, generator=generator)

    expected = [batch.tolist() for batch in make()]
    for taken in (0, 1, 3, 5):
        prefetcher = CudaPrefetcher(make(), "sim:h200", depth=3)
        batches = iter(prefetcher)
        first = numbers(next(batches) for _ in range(taken))
        state = prefetcher.state_dict()
        batches.close()

        resumed = CudaPrefetcher(make(), "sim:h200", depth=3)
        resumed.load_state_dict(state)
        assert first + numbers(resumed) == expected


def test_a_state_that_changes_is_copied():
    prefetcher = CudaPrefetcher(stateful(dataset=Stream()), "sim:h200", depth=4)
    batches = iter(prefetcher)
    assert numbers([next(batches)]) == [[0, 1]]
    state = prefetcher.state_dict()
    numbers(batches)
    resumed = CudaPrefetcher(stateful(dataset=Stream()), "sim:h200")
    resumed.load_state_dict(state)
    assert numbers(resumed)[0] == [2, 3]


def test_the_state_at_the_end_is_that_of_the_loader_at_its_end():
    loader = stateful()
    list(loader)
    prefetcher = CudaPrefetcher(stateful(), "sim:h200")
    list(prefetcher)
    assert prefetcher.state_dict() == loader.state_dict()
    # The next epoch begins anew.
    assert len(list(prefetcher)) == 6


def test_load_state_dict_ends_the_iteration():
    prefetcher = CudaPrefetcher(stateful(), "sim:h200")
    batches = iter(prefetcher)
    next(batches)
    state = prefetcher.state_dict()
    next(batches)
    prefetcher.load_state_dict(state)
    with pytest.raises(RuntimeError, match="load_state_dict"):
        next(batches)
    assert numbers(prefetcher)[0] == [2, 3]


def test_accelerate():
    accelerator = accelerate.Accelerator(cpu=True)
    loader = torch.utils.data.DataLoader(list(range(12)), batch_size=2)
    prepared = accelerator.prepare(loader)
    assert prefetch_prepared(prepared, "sim:h200") is prepared
    assert type(prepared.base_dataloader) is CudaPrefetcher
    assert isinstance(prepared, torch.utils.data.DataLoader)
    assert len(prepared) == 6
    # Again: no second prefetcher around the first.
    prefetch_prepared(prepared, "sim:h200")
    assert not isinstance(prepared.base_dataloader._source.loader, CudaPrefetcher)
    for _ in range(2):
        seen = []
        for batch in prepared:
            assert type(batch) is pinlane.DeviceArray
            seen.append((batch.numpy().tolist(), accelerator.gradient_state.end_of_dataloader))
        assert seen[0] == ([0, 1], False) and seen[-1] == ([10, 11], True)
    skipped = accelerate.skip_first_batches(prepared, 2)
    assert len(skipped) == 4


def test_accelerate_resumes_from_its_checkpoint(tmp_path):
    def make():
        configuration = accelerate.DataLoaderConfiguration(use_stateful_dataloader=True)
        accelerator = accelerate.Accelerator(cpu=True, dataloader_config=configuration)
        loader = torch.utils.data.DataLoader(list(range(12)), batch_size=2)
        prepared = prefetch_prepared(accelerator.prepare(loader), "sim:h200", depth=3)
        return accelerator, prepared

    accelerator, prepared = make()
    seen = []
    for batch in prepared:
        seen += numbers([batch])
        if len(seen) == 2:
            accelerator.save_state(tmp_path / "checkpoint")
            break
    accelerator, prepared = make()
    accelerator.load_state(tmp_path / "checkpoint")
    assert seen + numbers(prepared) == [[i, i + 1] for i in range(0, 12, 2)]


def test_a_loader_that_accelerate_did_not_prepare_is_wrapped():
    prefetcher = prefetch_prepared([np.arange(3)], "sim:h200")
    assert type(prefetcher) is CudaPrefetcher
    assert numbers(prefetcher) == [[0, 1, 2]]


class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def forward(self, x, labels=None):
        predicted = self.weight * x
        return {"loss": ((predicted - labels) ** 2).mean(), "logits": predicted}


class PrefetchingTrainer(transformers.Trainer):
    def get_train_dataloader(self):
        return prefetch_prepared(super().get_train_dataloader(), "sim:h200")

    def _prepare_inputs(self, inputs):
        # The model is on the CPU; on a GPU, batches are tensors there already.
        assert all(type(array) is pinlane.DeviceArray for array in inputs.values())
        self.batches = getattr(self, "batches", 0) + 1
        return {name: torch.from_numpy(array.numpy()) for name, array in inputs.items()}


def test_the_trainer_of_transformers(tmp_path):
    samples = [{"x": torch.tensor(float(i)), "labels": torch.tensor(2.0 * i)} for i in range(16)]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), use_cpu=True, num_train_epochs=2, per_device_train_batch_size=4, report_to=[],
        learning_rate=0.1, save_strategy="no", disable_tqdm=True, logging_strategy="no",
    )  # fmt: skip
    weights = {}
    for kind in (transformers.Trainer, PrefetchingTrainer):
        transformers.set_seed(3)
        trainer = kind(model=Line(), args=arguments, train_dataset=samples)
        trainer.train()
        weights[kind] = trainer.model.weight.item()
    assert trainer.batches == 8
    assert weights[transformers.Trainer] == weights[PrefetchingTrainer] != 0


def test_lightning():
    lightning = pytest.importorskip("pytorch_lightning")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.line = Line()
            self.seen = []

        def training_step(self, batch, _):
            # Lightning moves batches to its own device; these are on theirs already.
            assert type(batch) is pinlane.DeviceArray
            batch = torch.from_numpy(batch.numpy())
            self.seen += batch.tolist()
            return self.line(batch, batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 1e-3)

    loader = torch.utils.data.DataLoader(torch.arange(8.0), 2, num_workers=1, persistent_workers=True)
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    module = Module()
    trainer.fit(module, CudaPrefetcher(loader, "sim:h200"))
    assert module.seen == [*range(8)] * 2


def test_a_batch_encoding_stays_one():
    encoding = transformers.BatchEncoding({"input_ids": torch.arange(4)}, n_sequences=1)
    (batch,) = CudaPrefetcher([encoding], "sim:h200")
    assert type(batch) is transformers.BatchEncoding
    assert batch.n_sequences == 1
    assert batch.input_ids.numpy().tolist() == [0, 1, 2, 3]
    assert encoding.input_ids.tolist() == [0, 1, 2, 3]


def test_random_nests_come_back_equal():
    # Whatever the nest, the arrays in it are the same ones in the same places.
    source = random.Random(5)

    def nest(depth):
        kind = source.choice(["array", "dict", "list", "tuple"] if depth else ["array"])
        if kind == "array":
            return np.full(source.randrange(5), source.randrange(100))
        items = [nest(depth - 1) for _ in range(source.randrange(4))]
        return {"dict": dict(enumerate(items)), "list": items, "tuple": tuple(items)}[kind]

    def plain(x, leaf):
        if isinstance(x, dict):
            return {key: plain(value, leaf) for key, value in x.items()}
        if isinstance(x, (list, tuple)):
            return type(x)(plain(value, leaf) for value in x)
        return leaf(x)

    batches = [nest(3) for _ in range(40)]
    moved = list(CudaPrefetcher(batches, "sim:h200"))
    for batch, result in zip(batches, moved):
        expected = plain(batch, lambda array: array.tolist())
        assert plain(result, lambda array: array.numpy().tolist()) == expected
