#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants bugs in the packing of rows, in loss masks, and in cu_seqlens. Plants one bug at a time, and checks that the tests in TESTS
find each.

usage: planted_row_bugs.py FOLDER --header FILE [--jobs N] [--only TEXT]

  FOLDER    the root of the source tree
  --header  the header-only loader of a build tree: loader/header_only/include/millrace/header_only/loader.hpp

Compiles the tests with the header-only loader, whose sources are copied to a folder where the bug is planted, with $CXX or c++. A bug
counts as found if a test fails, crashes or takes longer than five minutes. Exits with 1 if a bug is not found, or if a test fails
without a bug.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import planted_bugs  # noqa: E402

LIBRARIES = ("dataset", "loader")
TESTS = ("tests/unit/dataset/packing/row_plan_test.cpp", "tests/unit/dataset/packing/packed_rows_test.cpp",
         "tests/property/loader/loss_masks_test.cpp", "tests/property/loader/context_parallel_test.cpp",
         "tests/property/loader/last_labels_test.cpp")

# planted_bugs.py describes the format of these entries.
BUGS = (
    # packing
    ("first fit looks in the wrong half",
     "if (tree_[at] < length) ++at;", "if (tree_[at] <= length) ++at;"),
    ("a row that is exactly full is not taken",
     "if (count_ != 0 && tree_[1] >= length) {", "if (count_ != 0 && tree_[1] > length) {"),
    ("lengths are not shuffled",
     "if (options.algorithm == packing_algorithm::first_fit_shuffle) {", "if (false) {"),
    ("lengths ascend",
     "} else {\n    std::ranges::reverse(items);\n  }", "}"),
    ("documents of a length are not drawn",
     "random.shuffle(std::span(left).subspan(by_length.begin(length), by_length.count(length)));", ""),
    ("small documents count as medium ones",
     "longest(third_ + 1, std::min<std::size_t>(rooms_[row], half_));",
     "longest(sixth_ + 1, std::min<std::size_t>(rooms_[row], half_));"),
    ("of small documents, the first of a length is taken",
     "put_last_of(row, longest(sixth_ + 1,", "put_first_of(row, longest(sixth_ + 1,"),
    ("pairs are added from the front",
     "for (std::size_t row = large_rows_; row-- > 0;) {", "for (std::size_t row = 0; row < large_rows_; ++row) {"),
    ("the rest goes into the fullest row",
     "std::size_t fill = fills.at_least(0); std::uint32_t row = 0;",
     "std::size_t fill = fills.at_most(seq_len_ - length); std::uint32_t row = 0;"),
    ("rows with equal tokens are a stack",
     "next[row] = no_next;\n      if (fills.has(fill)) {\n        next[last[fill]] = row;\n      } else {\n        first[fill] = row;",
     "next[row] = fills.has(fill) ? first[fill] : no_next;\n      {\n        first[fill] = row;"),
    ("the last rows stay in the order in which they began",
     "number[row] = numbered++;", "number[row] = row;"),
    ("the padding of documents takes no room",
     "each = each == 0 ? 0 : share_of({0, 0, each}, multiple, options.last_token_as_label);",
     "each = std::max<std::int64_t>(each - (options.last_token_as_label ? 1 : 0), 0);"),
    ("documents are counted from the first one of the dataset",
     "document_lengths(columns, of.first_document + first, of.first_document + last, out);",
     "document_lengths(columns, first, last, out);"),
    # masks
    ("labels have the masks of inputs",
     "if (alignment_ == mask_alignment::label) --at;", "if (alignment_ == mask_alignment::input) --at;"),
    ("the first label of a row has the bit of the first token",
     "if (at < 0) ++at, ++first;", "if (at < 0) ++at;"),
    ("a loss counts at the ends of documents",
     "if (0 < boundary && boundary < seq_len) drop(boundary - 1);", ""),
    ("a loss counts where the extra token begins a document",
     "if (row.extra_begins) drop(seq_len - 1);", ""),
    ("a dataset without a mask has no loss",
     "counted[static_cast<std::size_t>(i) / 32] |= 1U << (i % 32);", ""),
    ("masks are applied the other way round",
     "(counted[i / 32] >> (i % 32) & 1U) != 0 ? loss_mask[i] : 0.0F;",
     "(counted[i / 32] >> (i % 32) & 1U) == 0 ? loss_mask[i] : 0.0F;"),
    ("a context-parallel rank has the masks of the row's start",
     "formats::copy_bits(from, static_cast<std::uint64_t>(slices_[s].first), count, to, at);",
     "formats::copy_bits(from, at, count, to, at);"),
    # paddings
    ("padding between documents is left out",
     "start += share_of(parts[i], pad_documents_to(), labels);", "start += parts[i].tokens - (labels ? 1 : 0);"),
    ("cu_seqlens without padding counts padding",
     "std::max(0, rows[r].document_ends[i] - rows[r].boundaries[i - 1]);",
     "std::max(0, rows[r].boundaries[i] - rows[r].boundaries[i - 1]);"),
    ("both cu_seqlens are the same",
     "slot.cu_seqlens.push_back(slot.unpadded_ends()[static_cast<std::size_t>(i)]);", "slot.cu_seqlens.push_back(at);"),
    ("context-parallel ranks have no sums of tokens",
     "std::ranges::copy(whole.unpadded_ends(), slot.unpadded_ends().begin());",
     "std::ranges::fill(slot.unpadded_ends(), 0);"),
    ("max_seqlen is that of the last document",
     "slot.max_seqlen = std::max(slot.max_seqlen, at - padded.back());", "slot.max_seqlen = at - padded.back();"),
    # last tokens that are only labels
    ("a document takes a position for its last token",
     "const std::int64_t positions = part.tokens - (last_token_as_label ? 1 : 0);",
     "const std::int64_t positions = part.tokens;"),
    ("the last position of a document has no label",
     "std::min(each.real + (rules_.last_token_as_label ? 1 : 0), whole.layout.text_len());",
     "std::min(each.real, whole.layout.text_len());"),
    ("a context-parallel rank does not read a document's last label",
     "const std::int64_t known = chunk.real + (rules_.last_token_as_label ? 1 : 0);",
     "const std::int64_t known = chunk.real;"),
    ("the last label is an input if padding follows",
     "if (rules_.last_token_as_label) return divide_at_padding();", "if (rules_.last_token_as_label) return;"),
    ("the labels of earlier documents take no room in the text",
     "const std::int64_t labels = rules.last_token_as_label ? document - 1 : 0;", "const std::int64_t labels = 0;"),
    ("the last label of a document has no loss",
     "if (!last_token_as_label_) drop_last_labels(rows[r], seq_len, row);", "drop_last_labels(rows[r], seq_len, row);"),
    ("the padding of a row belongs to the last document",
     "if (start < seq_len() && labels) end_document(start, seq_len());",
     "if (start < seq_len() && labels) out.boundaries.back() = static_cast<std::int32_t>(seq_len());"),
    ("positions are searched among offsets of another text",
     "if (rules_.positions_at_boundaries && !rules_.packed) {", "if (rules_.positions_at_boundaries) {"),
)


class build:
    """Compiles the tests in a copy of the libraries."""

    def __init__(self, root, header, folder):
        self.root, self.header = root, header
        self.library = planted_bugs.Library.read(root, LIBRARIES)
        self.flags = [*planted_bugs.COMPILER, "-O0", "-w"]
        self.paths = folder / "paths.o"
        subprocess.run([*self.flags, f"-I{root / 'tests'}", f'-DMILLRACE_SOURCE_FOLDER="{root}"',
                        f'-DMILLRACE_BUILD_FOLDER="{folder}"', "-c", root / "tests/support/paths.cpp", "-o", self.paths],
                       check=True)

    def passes(self, bug, own):
        for library in LIBRARIES:
            shutil.copytree(self.root / library, own / library, ignore=shutil.ignore_patterns("inspect", "python"))
        if bug:
            file, text = self.library.plant(bug)
            (own / file).write_text(text)
        include = own / "millrace/header_only"
        include.mkdir(parents=True)
        # The tests need no io_uring, so nothing needs its library.
        lines = [line for line in self.header.read_text().splitlines() if "/uring_" not in line or "src" not in line
                 or "uring_options" in line or "uring_probe" in line]
        (include / "loader.hpp").write_text("\n".join(lines).replace(f'"{self.root}/', f'"{own}/') + "\n")
        (own / "tests.cpp").write_text("#include <millrace/header_only/loader.hpp>\n" +
                                       "".join(f'#include "{self.root / test}"\n' for test in TESTS))
        includes = [own, own / "dataset/include", own / "loader/include", self.root / "formats/include", self.root / "tests"]
        subprocess.run([*self.flags, *(f"-I{each}" for each in includes), own / "tests.cpp", self.paths, "-lgmock_main",
                        "-lgmock", "-lgtest", "-ldl", "-o", own / "tests.out"], check=True)
        return planted_bugs.passes_in_time(own / "tests.out", 300)


def main():
    parser = planted_bugs.script_parser(__doc__)
    parser.add_argument("--header", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = build(arguments.folder, arguments.header, pathlib.Path(folder))
        sys.exit(planted_bugs.check_tests(BUGS, made.passes, arguments))


if __name__ == "__main__":
    main()
