#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants bugs in the sampler (forward, back, ranks, edits, ramp-up, restarts) and in what it is made of, one at a time, and checks
that tests/property/dataset/sampler_model_test.cpp finds each.

usage: planted_sampler_bugs.py FOLDER [--jobs N] [--only TEXT]      FOLDER: the top of the sources

The test and the few sources that it needs are compiled here, by $CXX or c++. A bug is found where the test fails, crashes or takes
longer than two minutes. Exits 1 where a bug is not found, or where the test fails without one.
"""
import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCES = ("src/run/sampler.cpp", "src/run/batch_steps.cpp", "src/run/edited_stream.cpp", "src/run/edits.cpp",
           "src/megatron/cyclic_sampler.cpp", "src/megatron/data_share.cpp")
TEST = "tests/property/dataset/sampler_model_test.cpp"

# Name, file below dataset/, a line of ours as it is, and as somebody might write it.
BUGS = (
    # forward
    ("drop_last keeps the short end", "src/run/sampler.cpp",
     "end_sample_ = consumed + count_ * options_.width();", "end_sample_ = limit_;"),
    ("without drop_last the short end is dropped", "src/run/sampler.cpp",
     "} else if (left % options_.width() != 0) {\n    ++count_;", "} else if (left % options_.width() != 0) {\n    count_ += 0;"),
    ("a short micro-batch counts as a whole one", "src/run/sampler.cpp",
     "if (options_.drop_last || left >= samples) return samples / options_.width();",
     "return samples / options_.width();"),
    ("full validation does not begin again", "src/run/sampler.cpp",
     "return sample < end_ ? sample : sample % options_.world_size;", "return sample < end_ ? sample : end_ - 1;"),
    ("full validation leaves the last turn out", "src/run/sampler.cpp",
     "end_sample_ = turns > unbounded / ranks ? unbounded : turns * ranks;",
     "end_sample_ = turns > unbounded / ranks ? unbounded : end_;"),
    ("the draw of a pass is that of the next", "src/run/sampler.cpp",
     "std::make_shared<const drawn_order>(epoch, size)", "std::make_shared<const drawn_order>(epoch + 1, size)"),
    # ranks
    ("ranks are dealt rows one by one", "src/run/sampler.cpp",
     "number.first_sample = first + std::min(rank * rows_of_rank, limit_ - first);",
     "number.first_sample = first + std::min(rank, limit_ - first);"),
    ("a slot is of the rank that has the row number", "src/run/sampler.cpp",
     "return {step, in_turn / options_.batch_size,", "return {step, in_turn % options_.world_size,"),
    ("rows of a slot are counted over ranks", "src/run/sampler.cpp",
     "slot.rank * options_.batch_size + slot.slot % options_.batch_size;",
     "slot.slot % options_.batch_size * options_.world_size + slot.rank;"),
    ("unsharded rows lie side by side", "include/millrace/dataset/megatron/cyclic_sampler.hpp",
     "return order[batch * share.width() + rank + row * share.ranks];",
     "return order[batch * share.width() + rank * share.micro_batch_size + row];"),
    ("the ranks that are ahead are not", "src/run/sampler.cpp",
     "if (layout().batches(rank) > each) {", "if (layout().batches(rank) > each + 1) {"),
    ("ranks that are ahead serve a batch twice where a pass counts one", "src/run/sampler.cpp",
     "if (each == 1) return {first_epoch_ + turn / 2 * 2, turn % 2};", "if (each == 0) return {first_epoch_, 0};"),
    # restarts
    ("steps do not move with the start", "src/run/sampler.cpp",
     "offset_ = (consumed - steps_.first_position(steps_.step_of(consumed))) % options_.width();", "offset_ = 0;"),
    ("micro-batches are counted from the start of the run", "src/run/sampler.cpp",
     "const std::int64_t in_turn = (sample - first_sample()) % options_.width();",
     "const std::int64_t in_turn = sample % options_.width();"),
    ("a restart in the middle of a pass begins it", "src/run/sampler.cpp",
     "first_batch_ = options_.consumed_samples % active / options_.width();", "first_batch_ = 0;"),
    ("a restart in a later pass keeps ranks ahead", "src/run/sampler.cpp",
     "if (epoch == first_epoch_ || all == counted()) return {0, all};",
     "if (epoch == 0 || all == counted()) return {0, all};"),
    ("the first whole step may be begun", "src/run/sampler.cpp",
     "stop < 0 ? 0 : std::min(steps_.step_of(stop), last_step() + 1);",
     "stop < 0 ? 0 : std::min(steps_.done_at(stop), last_step() + 1);"),
    # back
    ("a position is listed beyond the end of the question", "src/run/sampler.cpp",
     "if (first_sample() <= sample && sample < stop) add_place", "if (first_sample() <= sample) add_place"),
    ("what was served before the start is listed", "src/run/sampler.cpp",
     "if (first_sample() <= sample && sample < stop) add_place", "if (sample < stop) add_place"),
    ("who begins again is not listed", "src/run/sampler.cpp",
     "if (position < options_.world_size && again >= end_) add(again, position);",
     "if (position < 0) add(again, position);"),
    ("only the first replay is listed", "src/run/sampler.cpp",
     "for (const std::int64_t sample : edits_->all_served(position)) add(sample, position);",
     "if (const auto first = edits_->served(position)) add(*first, position);"),
    ("the last pass is not looked at", "src/run/sampler.cpp",
     "epoch <= last_epoch; ++epoch", "epoch < last_epoch; ++epoch"),
    ("shards are looked at for one rank alone", "src/run/sampler.cpp",
     "for (std::int64_t rank = 0; rank < options_.world_size; ++rank) {\n        look(",
     "for (std::int64_t rank = 0; rank < 1; ++rank) {\n        look("),
    ("unsharded rows and ranks are exchanged", "src/run/sampler.cpp",
     "in_turn % options_.world_size,\n             in_turn / options_.world_size",
     "in_turn / options_.batch_size,\n             in_turn % options_.batch_size"),
    ("places come by position", "src/run/sampler.cpp",
     "std::ranges::sort(found, {}, &served_place::sample);", "std::ranges::sort(found, {}, &served_place::position);"),
    # edits
    ("edits are not followed forward", "src/run/sampler.cpp",
     "return edits_ ? (*edits_)[sample] : sample;", "return sample;"),
    ("the run does not get longer by a replay", "src/run/sampler.cpp",
     "limit_ = edits_ ? edits_->served_before(end_) : end_;", "limit_ = edits_ ? std::min(edits_->served_before(end_), end_) : end_;"),
    ("edits reach one position short", "src/run/edited_stream.cpp",
     "const std::int64_t here = r.position + (n - r.served);", "const std::int64_t here = r.position + (n - r.served) - 1;"),
    ("stretches that overlap are not looked for", "src/run/edited_stream.cpp",
     "while (i-- > 0 && furthest_end_[i] > position) {", "if (i-- > 0) {"),
    ("a skipped position is replayed", "include/millrace/dataset/run/edited_stream.hpp",
     "range.first = std::min(free.first, range.last);", "range.first = std::min(range.first, range.last);"),
    ("edits act from the start", "src/run/edited_stream.cpp",
     "b.advance(edits[i].since);", "b.advance(0);"),
    ("a replay is in its turn", "src/run/sampler.cpp",
     "if (each.replayed_by) {\n      turns.again", "if (false) {\n      turns.again"),
    ("what edits drop between is looked for too early", "src/run/sampler.cpp",
     "const position_range range{std::max(each.positions.first, from),",
     "const position_range range{std::max<std::int64_t>(each.positions.first, 0),"),
    ("what edits drop between is looked for too late", "src/run/sampler.cpp",
     "std::min(each.positions.last, to)};", "std::min(each.positions.last, end_)};"),
    ("ranks that are ahead drop nothing", "src/run/sampler.cpp",
     "if (counted() > 1) return {1, all};", "if (counted() > 1) return {0, all};"),
    # ramp-up
    ("the ramp-up is one step late", "src/run/batch_steps.cpp",
     "l.step += other;", "l.step += other + 1;"),
    ("the ramp-up rounds up", "src/run/batch_steps.cpp",
     "static_cast<std::int64_t>(static_cast<double>(consumed) / per_increment);",
     "static_cast<std::int64_t>(static_cast<double>(consumed) / per_increment + 0.5);"),
    ("slots are those of the full batch", "include/millrace/dataset/run/sampler.hpp",
     "return steps_.samples_of(step) / options_.world_size;", "return options_.samples_of_step() / options_.world_size;"),
)


class build:
    """Objects of the test and of its sources, without a bug."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        self.flags = [os.environ.get("CXX", "c++"), "-std=c++20", "-O0", "-pthread", "-DMILLRACE_INLINE="]

    def includes(self, dataset):
        return [f"-I{dataset / 'include'}", f"-I{self.root / 'formats/include'}", f"-I{self.root / 'tests'}"]

    def compile(self, source, to, dataset):
        subprocess.run([*self.flags, *self.includes(dataset), "-c", str(source), "-o", str(to)], check=True)

    def originals(self):
        dataset = self.root / "dataset"
        self.objects = {name: self.folder / (pathlib.Path(name).stem + ".o") for name in SOURCES + (TEST,)}
        for name, to in self.objects.items():
            self.compile(self.root / name if name == TEST else dataset / name, to, dataset)

    def link_and_run(self, objects, program):
        subprocess.run([*self.flags, *map(str, objects), "-lgtest", "-lgtest_main", "-o", str(program)], check=True)
        try:
            done = subprocess.run([program], capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def finds(self, number, bug):
        _, file, line, altered = bug
        own = self.folder / str(number)
        shutil.copytree(self.root / "dataset", own / "dataset", ignore=shutil.ignore_patterns("inspect"))
        source = own / "dataset" / file
        text = source.read_text()
        if text.count(line) != 1:
            raise SystemExit(f"{bug[0]}: {text.count(line)} times in {file}, expected once: {line!r}")
        source.write_text(text.replace(line, altered))
        objects = dict(self.objects)
        for name in (file,) if file in SOURCES else SOURCES + (TEST,):
            objects[name] = own / (pathlib.Path(name).stem + ".o")
            self.compile(self.root / name if name == TEST else own / "dataset" / name, objects[name], own / "dataset")
        found = not self.link_and_run(objects.values(), own / "test")
        shutil.rmtree(own)
        return found


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder", type=lambda folder: pathlib.Path(folder).resolve())
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = build(arguments.folder, pathlib.Path(folder))
        made.originals()
        if not made.link_and_run(made.objects.values(), made.folder / "test"):
            raise SystemExit("the test fails without a bug")
        bugs = [(number, bug) for number, bug in enumerate(BUGS) if arguments.only in bug[0]]
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            found = list(pool.map(lambda each: made.finds(*each), bugs))
    for (_, bug), is_found in zip(bugs, found):
        print(f"{'found' if is_found else 'NOT FOUND'}: {bug[0]}")
    print(f"{sum(found)} of {len(found)} bugs found")
    sys.exit(0 if all(found) else 1)


if __name__ == "__main__":
    main()
