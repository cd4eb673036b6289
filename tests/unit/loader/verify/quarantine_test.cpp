// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/verify/quarantine.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/state.hpp>
#include <millrace/loader/detail/verify/data_verifier.hpp>

#include "support/summed_dataset.hpp"

namespace millrace::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using ids = std::uint16_t;

constexpr std::uint64_t block_mib = std::uint64_t{1} << 20;
constexpr std::size_t block_tokens = block_mib / sizeof(ids);

/// Returns all findings in a dataset.
std::vector<finding> findings_of(const test::summed_dataset<ids>& data) {
  data_verifier verifier({data.file()}, {.bad_blocks = bad_block_policy::report,
                                         .scrub_bytes_per_second = 0,
                                         .in_memory = [](int, auto, auto) { return true; }});
  std::vector<std::byte> bytes(data.tokens().size() * sizeof(ids));
  const read_request all{{0, 0, bytes.size()}, bytes.data()};
  verifier.check({&all, 1}, 0);
  return verifier.report().findings;
}

TEST(Quarantine, BlocksTheDocumentsOfABadBlock) {
  const test::summed_dataset<ids> data(4 * block_tokens, 31999, 1000);
  test::flip_bit(data.bin(), 2 * block_mib + 5);
  const quarantine q = quarantine_of(findings_of(data), 512);
  ASSERT_EQ(q.edits.size(), 1U);
  const dataset::edit& edit = q.edits[0];
  EXPECT_EQ(dataset::name_of(edit), "block_documents");
  // Each document has 1000 tokens. The edit covers every document with a token in the bad block,
  // even if only a part of the document is in it.
  EXPECT_EQ(edit.first, static_cast<std::int64_t>(2 * block_tokens / 1000));
  EXPECT_EQ(edit.last, static_cast<std::int64_t>((3 * block_tokens - 1) / 1000 + 1));
  EXPECT_EQ(edit.since, 512);
  EXPECT_EQ(edit.source, data.prefix().string());
  EXPECT_THAT(edit.why, HasSubstr("block 2, the bytes 2097152 to 3145727"));
  EXPECT_THAT(q.not_edited, IsEmpty());
  EXPECT_NO_THROW(dataset::check(edit, 0));
}

TEST(Quarantine, NamesEachDocumentOnce) {
  // Blocks 0 and 1 are bad and share a document. Block 4 is bad, too.
  const test::summed_dataset<ids> data(6 * block_tokens, 31999, 1000);
  for (const std::uint64_t block : {0U, 1U, 4U}) test::flip_bit(data.bin(), block * block_mib);
  const quarantine q = quarantine_of(findings_of(data), 0);
  ASSERT_EQ(q.edits.size(), 2U);
  EXPECT_EQ(q.edits[0].first, 0);
  EXPECT_EQ(q.edits[0].last, static_cast<std::int64_t>((2 * block_tokens - 1) / 1000 + 1));
  EXPECT_THAT(q.edits[0].why, HasSubstr("block 0,"));
  EXPECT_THAT(q.edits[0].why, HasSubstr("; block 1,"));
  EXPECT_EQ(q.edits[1].first, static_cast<std::int64_t>(4 * block_tokens / 1000));
}

TEST(Quarantine, SaysWhatNoEditCanHelp) {
  finding of_index;
  of_index.path = "data.idx";
  of_index.of_bin = false;
  of_index.block = 0;
  of_index.last_byte = 5;
  of_index.what = "block 0 has changed since it was written";
  finding of_sum;
  of_sum.path = "data.sum";
  of_sum.what = "it is none";
  const quarantine q = quarantine_of(std::vector{of_index, of_sum}, 0);
  EXPECT_THAT(q.edits, IsEmpty());
  EXPECT_THAT(q.not_edited, ElementsAre("data.idx: block 0 has changed since it was written",
                                        "data.sum: it is none"));
}

TEST(Quarantine, IsReadAsItWasWritten) {
  const test::summed_dataset<ids> data(3 * block_tokens, 31999, 1000);
  test::flip_bit(data.bin(), 0);
  test::flip_bit(data.bin(), 2 * block_mib);
  const quarantine q = quarantine_of(findings_of(data), 77);
  ASSERT_EQ(q.edits.size(), 2U);
  const test::temp_folder folder;
  write_quarantine(folder / "quarantine.json", q.edits);
  EXPECT_EQ(read_quarantine(folder / "quarantine.json"), q.edits);
  // The quarantine file can also be parsed as a state.
  EXPECT_EQ(dataset::parse_state(test::read_text(folder / "quarantine.json")).edits, q.edits);
  EXPECT_THAT(test::read_text(folder / "quarantine.json"),
              HasSubstr("{\"millrace_state\": 1, \"edits\": [{\"block_documents\": [0, "));
}

TEST(Quarantine, RefusesWhatIsNone) {
  const test::temp_folder folder;
  test::write_text(folder / "broken", "{\"millrace_state\": 1, \"edits\": [");
  EXPECT_THROW((void)read_quarantine(folder / "broken"), format_error);
  test::write_text(folder / "other", "{\"edits\": []}");
  try {
    (void)read_quarantine(folder / "other");
    FAIL() << "read";
  } catch (const format_error& e) {
    EXPECT_EQ(e.path(), folder / "other");
    EXPECT_THAT(e.problem(), HasSubstr("this is not a run state"));
  }
  EXPECT_THROW((void)read_quarantine(folder / "none"), io_error);
}

}  // namespace
}  // namespace millrace::loader
