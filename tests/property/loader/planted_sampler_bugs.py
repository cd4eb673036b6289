#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants bugs in the sampler (forward and backward lookups, ranks, edits, ramp-up, restarts) and in the classes that it uses. Plants
one bug at a time, and checks that tests/property/dataset/sampler_model_test.cpp finds each bug.

usage: planted_sampler_bugs.py FOLDER [--jobs N] [--only TEXT]      FOLDER: the root of the source tree

This script compiles the test and the few sources that it needs, with $CXX or c++. A bug counts as found if the test fails, crashes or
takes longer than two minutes. Exits with 1 if a bug is not found, or if the test fails without a bug.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import planted_bugs  # noqa: E402

SOURCES = ("src/run/sampler.cpp", "src/run/batch_steps.cpp", "src/run/edited_stream.cpp", "src/run/edits.cpp",
           "src/megatron/cyclic_layout.cpp")
TEST = "tests/property/dataset/sampler_model_test.cpp"

# planted_bugs.py describes the format of these entries.
BUGS = (
    # forward lookups
    ("drop_last keeps the short end",
     "end_sample_ = consumed + count_ * options_.width();", "end_sample_ = limit_;"),
    ("without drop_last the short end is dropped",
     "} else if (left % options_.width() != 0) {\n    ++count_;", "} else if (left % options_.width() != 0) {\n    count_ += 0;"),
    ("a short micro-batch counts as a whole one",
     "if (options_.drop_last || left >= samples) return samples / options_.width();",
     "return samples / options_.width();"),
    ("full validation does not begin again",
     "return $sample < end_ ? $sample : $sample % options_.world_size;", "return $sample < end_ ? $sample : end_ - 1;"),
    ("full validation leaves the last turn out",
     "end_sample_ = turns > unbounded / ranks ? unbounded : turns * ranks;",
     "end_sample_ = turns > unbounded / ranks ? unbounded : end_;"),
    ("the draw of a pass is that of the next",
     "std::make_shared<const drawn_order>($epoch, $size)", "std::make_shared<const drawn_order>($epoch + 1, $size)"),
    # ranks
    ("ranks are dealt rows one by one",
     "first_sample = $first + std::min($rank * $rows, limit_ - $first);",
     "first_sample = $first + std::min($rank, limit_ - $first);"),
    ("a slot is of the rank that has the row number",
     "return {$step, $turn / options_.batch_size,", "return {$step, $turn % options_.world_size,"),
    ("rows of a slot are counted over ranks",
     "slot.rank * options_.batch_size + slot.slot % options_.batch_size;",
     "slot.slot % options_.batch_size * options_.world_size + slot.rank;"),
    ("unsharded rows lie side by side",
     "return $order[$batch * $share.width() + $rank + $row * $share.ranks];",
     "return $order[$batch * $share.width() + $rank * $share.micro_batch_size + $row];"),
    ("the ranks that are ahead are not",
     "if (layout().batches(rank) > each) {", "if (layout().batches(rank) > each + 1) {"),
    ("ranks that are ahead serve a batch twice where a pass counts one",
     "if (each == 1) return {first_epoch_ + turn / 2 * 2, turn % 2};", "if (each == 0) return {first_epoch_, 0};"),
    # restarts
    ("steps do not move with the start",
     "offset_ = (consumed - steps_.first_position(steps_.step_of(consumed))) % options_.width();", "offset_ = 0;"),
    ("micro-batches are counted from the start of the run",
     "const std::int64_t in_turn = (sample - first_sample()) % options_.width();",
     "const std::int64_t in_turn = sample % options_.width();"),
    ("a restart in the middle of a pass begins it",
     "first_batch_ = options_.consumed_samples % active / options_.width();", "first_batch_ = 0;"),
    ("a restart in a later pass keeps ranks ahead",
     "if (epoch == first_epoch_ || all == counted()) return {0, all};",
     "if (epoch == 0 || all == counted()) return {0, all};"),
    ("the first whole step may be begun",
     "stop < 0 ? 0 : std::min(steps_.step_of(stop), last_step() + 1);",
     "stop < 0 ? 0 : std::min(steps_.done_at(stop), last_step() + 1);"),
    # backward lookups
    ("a position is listed beyond the end of the question",
     "if (first_sample() <= sample && sample < stop) add_place", "if (first_sample() <= sample) add_place"),
    ("what was served before the start is listed",
     "if (first_sample() <= sample && sample < stop) add_place", "if (sample < stop) add_place"),
    ("who begins again is not listed",
     "if ($position < options_.world_size && $again >= end_) add($again, $position);",
     "if ($position < 0) add($again, $position);"),
    ("only the first replay is listed",
     "for (const std::int64_t $sample : edits_->all_served($position)) add($sample, $position);",
     "if (const auto first = edits_->served($position)) add(*first, $position);"),
    ("the last pass is not looked at",
     "epoch <= last_epoch; ++epoch", "epoch < last_epoch; ++epoch"),
    ("shards are looked at for one rank alone",
     "for (std::int64_t rank = 0; rank < options_.world_size; ++rank) {\n        look(",
     "for (std::int64_t rank = 0; rank < 1; ++rank) {\n        look("),
    ("unsharded rows and ranks are exchanged",
     "in_turn % options_.world_size,\n             in_turn / options_.world_size",
     "in_turn / options_.batch_size,\n             in_turn % options_.batch_size"),
    ("places come by position",
     "std::ranges::sort(found, {}, &served_place::sample);", "std::ranges::sort(found, {}, &served_place::position);"),
    # edits
    ("edits are not followed forward",
     "return edits_ ? (*edits_)[$sample] : $sample;", "return $sample;"),
    ("the run does not get longer by a replay",
     "limit_ = edits_ ? edits_->served_before(end_) : end_;", "limit_ = edits_ ? std::min(edits_->served_before(end_), end_) : end_;"),
    ("edits reach one position short",
     "= $r.position + ($n - $r.served);", "= $r.position + ($n - $r.served) - 1;"),
    ("stretches that overlap are not looked for",
     "while ($i-- > 0 && furthest_end_[$i] > $position) {", "if ($i-- > 0) {"),
    ("a skipped position is replayed",
     "first = std::min($free.first, $range.last);", "first = std::min($range.first, $range.last);"),
    ("edits act from the start",
     "b.advance(edits[i].since);", "b.advance(0);"),
    ("a replay is in its turn",
     "if (each.replayed_by) {\n      turns.again", "if (false) {\n      turns.again"),
    ("what edits drop between is looked for too early",
     "const position_range range{std::max(each.positions.first, from),",
     "const position_range range{std::max<std::int64_t>(each.positions.first, 0),"),
    ("what edits drop between is looked for too late",
     "std::min(each.positions.last, to)};", "std::min(each.positions.last, end_)};"),
    ("ranks that are ahead drop nothing",
     "if (counted() > 1) return {1, all};", "if (counted() > 1) return {0, all};"),
    # ramp-up
    ("the ramp-up is one step late",
     "l.step += other;", "l.step += other + 1;"),
    ("the ramp-up rounds up",
     "static_cast<std::int64_t>(static_cast<double>($consumed) / $increment);",
     "static_cast<std::int64_t>(static_cast<double>($consumed) / $increment + 0.5);"),
    ("slots are those of the full batch",
     "return steps_.samples_of(step) / options_.world_size;", "return options_.samples_of_step() / options_.world_size;"),
)


class build:
    """Compiles the test and the sources that it needs: first without a bug, then what a bug changes."""

    def __init__(self, root, folder):
        self.root = root
        self.library = planted_bugs.Library.read(root / "dataset")
        self.flags = [*planted_bugs.COMPILER, "-O0", "-DMILLRACE_INLINE="]
        self.objects = {name: folder / (pathlib.Path(name).stem + ".o") for name in SOURCES + (TEST,)}
        for name, to in self.objects.items():
            self.compile(name, to, root / "dataset")

    def includes(self, dataset):
        return [f"-I{dataset / 'include'}", f"-I{self.root / 'formats/include'}", f"-I{self.root / 'tests'}"]

    def compile(self, name, to, dataset):
        source = self.root / name if name == TEST else dataset / name
        subprocess.run([*self.flags, *self.includes(dataset), "-c", str(source), "-o", str(to)], check=True)

    def planted(self, bug, own):
        """The objects of the sources that the bug changes."""
        shutil.copytree(self.root / "dataset", own / "dataset", ignore=shutil.ignore_patterns("inspect"))
        file, text = self.library.plant(bug)
        (own / "dataset" / file).write_text(text)
        objects = {name: own / (pathlib.Path(name).stem + ".o") for name in ((file,) if file in SOURCES else self.objects)}
        for name, to in objects.items():
            self.compile(name, to, own / "dataset")
        return objects

    def passes(self, bug, own):
        objects = self.objects | (self.planted(bug, own) if bug else {})
        subprocess.run([*self.flags, *map(str, objects.values()), "-lgtest", "-lgtest_main", "-o", str(own / "test")], check=True)
        return planted_bugs.passes_in_time(own / "test", 120)


def main():
    arguments = planted_bugs.script_parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = build(arguments.folder, pathlib.Path(folder))
        sys.exit(planted_bugs.check_tests(BUGS, made.passes, arguments))


if __name__ == "__main__":
    main()
