// SPDX-License-Identifier: Apache-2.0
#include "output/committer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <millrace/formats/mmidx.hpp>

#include "support/paths.hpp"

namespace millrace::preprocess {
namespace {

using formats::dtype;
using testing::ElementsAre;

class Committer : public testing::Test {
 protected:
  committer make(bad_record_policy policy = bad_record_policy::fail) {
    commit_options options;
    options.prefixes = {folder_ / "out_a", folder_ / "out_b"};
    options.dataset = {.type = dtype::uint16,
                       .checksums = true,
                       .provenance = true,
                       .quarantine = policy == bad_record_policy::quarantine};
    options.on_bad_record = policy;
    options.most_bad_records = most_bad_records_;
    options.most_tokens = most_tokens_;
    return committer(inputs_, {.end = {inputs_.size(), 0}}, options, nullptr);
  }

  static std::vector<std::string> commit(committer& c, encoded_block block) {
    return c.commit(block);
  }
  // A block with two empty columns.
  static encoded_block block(std::size_t input, std::uint64_t offset, std::int64_t lines) {
    encoded_block made;
    made.input = input;
    made.begin = made.text_offset = offset;
    made.end = offset + 100;
    made.text_bytes = 100;
    made.counts.lines = lines;
    made.columns.resize(2);
    return made;
  }
  static void add_fault(encoded_block& to, std::int64_t line, std::size_t offset,
                        const std::string& what) {
    const record_range place{static_cast<std::uint32_t>(line), static_cast<std::uint32_t>(offset),
                             5};
    to.faults.push_back({{fault_kind::missing_key, 0, what}, place, 5, "a raw line"});
    ++to.counts.bad_records[static_cast<std::size_t>(fault_kind::missing_key)];
  }
  static void add_document(encoded_column& to, int number) {
    const auto id = static_cast<std::uint16_t>(number);
    to.ids.reserve(to.ids_bytes + 2, to.ids_bytes);
    std::memcpy(to.ids.data() + to.ids_bytes, &id, 2);
    to.ids_bytes += 2;
    to.lengths.push_back(1);
    to.document_ends.push_back(static_cast<std::int64_t>(to.lengths.size()));
  }

  // Three documents with a token per key, at bytes 10, 20 and 30, and a bad record at byte 15.
  static encoded_block block_of_three() {
    encoded_block made = block(0, 0, 4);
    for (int i = 0; i < 3; ++i) {
      for (encoded_column& column : made.columns) add_document(column, i);
      made.places.push_back({i == 0 ? 0 : i + 1, static_cast<std::uint64_t>(10 + 10 * i), 5});
      document_mark mark;
      mark.counts.lines = made.places.back().line;
      mark.counts.documents = i;
      mark.text_bytes = made.places.back().begin;
      made.marks.push_back(mark);
    }
    made.counts.documents = 3;
    add_fault(made, 1, 15, "bad");
    return made;
  }

  static std::string failure(committer& c, encoded_block& b) {
    try {
      (void)c.commit(b);
    } catch (const bad_record_error& e) {
      return e.what();
    }
    return "no bad_record_error";
  }

  static void finish(committer& c) {
    for (dataset_writer& writer : c.writers()) {
      (void)writer.finish({});
      writer.finish_meta("{}\n");
      publish_dataset(writer.paths(), writer.sidecars());
    }
  }

  std::optional<std::int64_t> most_bad_records_;
  std::optional<std::int64_t> most_tokens_;
  test::temp_folder folder_;
  std::vector<input_file> inputs_ = {{.path = "first.jsonl"}, {.path = "second.jsonl.gz"}};
};

// Lines are counted from one and bytes from zero. Users find the line with `sed -n 8p` and the byte
// with `tail -c +N`.
TEST_F(Committer, CountsLinesFromOneAndBytesFromZero) {
  committer c = make();
  encoded_block bad = block(0, 0, 1);
  add_fault(bad, 0, 0, "missing key \"text\"");
  EXPECT_EQ(failure(c, bad), "first.jsonl:1 (byte 0): missing key \"text\"");
}

TEST_F(Committer, CountsLinesOverTheBlocksOfAFile) {
  committer c = make();
  (void)commit(c, block(0, 0, 5));
  (void)commit(c, block(0, 100, 2));
  encoded_block bad = block(0, 200, 4);
  add_fault(bad, 3, 17, "what");
  EXPECT_EQ(failure(c, bad), "first.jsonl:11 (byte 217): what");
}

TEST_F(Committer, CountsLinesOfEachFileAnew) {
  committer c = make();
  (void)commit(c, block(0, 0, 5));
  (void)commit(c, block(1, 0, 2));
  encoded_block bad = block(1, 100, 1);
  add_fault(bad, 0, 1, "what");
  EXPECT_EQ(failure(c, bad), "second.jsonl.gz:3 (byte 101): what");
}

TEST_F(Committer, FailsWithTheFirstFaultOfABlock) {
  committer c = make();
  encoded_block bad = block(0, 0, 9);
  add_fault(bad, 2, 20, "first");
  add_fault(bad, 5, 50, "second");
  EXPECT_EQ(failure(c, bad), "first.jsonl:3 (byte 20): first");
}

TEST_F(Committer, EndsBeforeTheDocumentThatDoesNotFit) {
  most_tokens_ = 2;
  committer c = make(bad_record_policy::skip);
  encoded_block block = block_of_three();
  EXPECT_THAT(c.commit(block), ElementsAre("first.jsonl:2 (byte 15): bad"));
  EXPECT_TRUE(c.is_full());
  EXPECT_EQ(c.state().stopped_before, (text_place{0, 30}));
  EXPECT_EQ(c.state().next, (text_place{0, 30}));
  EXPECT_EQ(c.state().counts.documents, 2);
  EXPECT_EQ(c.state().counts.lines, 3);
  EXPECT_EQ(c.most_growth(), 0);
}

// A resumed run must read such a block again.
TEST_F(Committer, DoesNotEndInABlockThatFails) {
  most_tokens_ = 2;
  most_bad_records_ = 0;
  committer c = make(bad_record_policy::skip);
  encoded_block block = block_of_three();
  EXPECT_EQ(failure(c, block), "first.jsonl:2 (byte 15): bad; this exceeds --max-bad-records 0");
  EXPECT_FALSE(c.is_full());
  EXPECT_FALSE(c.state().has_ended());
}

// A path like "{}" or "%s" must not be used as a format string.
TEST_F(Committer, TakesNamesLiterally) {
  inputs_[0].path = "{}%s{0}";
  committer c = make();
  encoded_block bad = block(0, 0, 1);
  add_fault(bad, 0, 0, "{} %n");
  EXPECT_EQ(failure(c, bad), "{}%s{0}:1 (byte 0): {} %n");
}

TEST_F(Committer, NotesTheFaultsThatItSkips) {
  committer c = make(bad_record_policy::skip);
  EXPECT_TRUE(commit(c, block(0, 0, 5)).empty());
  encoded_block bad = block(0, 100, 9);
  add_fault(bad, 2, 20, "one");
  add_fault(bad, 5, 50, "two");
  EXPECT_THAT(c.commit(bad),
              ElementsAre("first.jsonl:8 (byte 120): one", "first.jsonl:11 (byte 150): two"));
  EXPECT_EQ(c.state().counts.bad_record_total(), 2);
  EXPECT_EQ(c.state().counts.lines, 14);
  EXPECT_EQ(c.state().inputs[0].text_bytes, 200U);
  EXPECT_EQ(c.state().next, (text_place{0, 200}));
}

TEST_F(Committer, WritesEachColumnIntoItsOwnDataset) {
  committer c = make();
  for (const int id : {1, 2, 3}) {
    encoded_block b = block(0, static_cast<std::uint64_t>(id - 1) * 100, 2);
    add_document(b.columns[0], id);
    add_document(b.columns[1], id * 10);
    add_document(b.columns[1], id * 10 + 1);
    (void)c.commit(b);
  }
  finish(c);
  const auto ids = [&](const char* name) {
    const std::string bytes = test::read_text(folder_ / name);
    std::vector<std::uint16_t> out(bytes.size() / 2);
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  };
  EXPECT_THAT(ids("out_a.bin"), ElementsAre(1, 2, 3));
  EXPECT_THAT(ids("out_b.bin"), ElementsAre(10, 11, 20, 21, 30, 31));
  const std::vector<std::int32_t> lengths(6, 1);
  const std::vector<std::int64_t> index = {0, 1, 2, 3, 4, 5, 6};
  EXPECT_EQ(test::read_bytes(folder_ / "out_b.idx"),
            formats::encode_mmidx(dtype::uint16, lengths, index));
}

TEST_F(Committer, ShowsNoNameBeforeFinish) {
  {
    committer c = make();
    encoded_block b = block(0, 0, 1);
    for (auto& column : b.columns) add_document(column, 7);
    (void)c.commit(b);
    for (const char* name : {"out_a.bin", "out_a.idx", "out_b.bin", "out_b.idx"}) {
      EXPECT_FALSE(std::filesystem::exists(folder_ / name)) << name;
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

// A block that does not directly follow the previous block is refused. Skipped bytes of an input
// would lose documents, and repeated bytes would duplicate them.
TEST_F(Committer, RefusesABlockThatDoesNotFollow) {
  committer c = make();
  (void)commit(c, block(0, 0, 5));
  EXPECT_THROW((void)commit(c, block(0, 99, 2)), format_error);
  EXPECT_THROW((void)commit(c, block(0, 101, 2)), format_error);
  EXPECT_THROW((void)commit(c, block(1, 1, 2)), format_error);
}

TEST_F(Committer, StopsAtOneBadRecordTooMany) {
  most_bad_records_ = 2;
  committer c = make(bad_record_policy::skip);
  encoded_block bad = block(0, 0, 9);
  add_fault(bad, 2, 20, "one");
  (void)c.commit(bad);
  encoded_block worse = block(0, 100, 9);
  add_fault(worse, 1, 10, "two");
  add_fault(worse, 2, 20, "three");
  add_fault(worse, 3, 30, "four");
  EXPECT_EQ(failure(c, worse),
            "first.jsonl:12 (byte 120): three; this exceeds --max-bad-records 2");
  EXPECT_EQ(c.state().next.offset, 100U) << "nothing of the block counts";
}

TEST_F(Committer, KeepsBadRecordsUnderQuarantine) {
  committer c = make(bad_record_policy::quarantine);
  (void)commit(c, block(0, 0, 5));
  encoded_block bad = block(0, 100, 9);
  add_fault(bad, 2, 20, "no \"text\"");
  (void)c.commit(bad);
  finish(c);
  const std::string expected =
      "{\"file\": \"first.jsonl\", \"line\": 8, \"byte\": 120, \"bytes\": 5, \"fault\": "
      "\"missing_key\", \"fault_byte\": 0, \"reason\": \"no \\\"text\\\"\", \"raw\": \"a raw "
      "line\"}\n";
  EXPECT_EQ(test::read_text(folder_ / "out_a.bad"), expected);
  EXPECT_EQ(test::read_text(folder_ / "out_b.bad"), expected);
}

TEST_F(Committer, GoesOnFromAState) {
  commit_options options;
  options.prefixes = {folder_ / "out_a"};
  options.dataset = {.type = dtype::uint16, .checksums = true, .provenance = true};
  const read_range all{.end = {inputs_.size(), 0}};
  run_progress saved;
  {
    committer c(inputs_, all, options, nullptr);
    c.keep();
    encoded_block b = block(1, 0, 3);
    add_document(b.columns[0], 1);
    b.places.push_back({});
    (void)c.commit(b);
    saved = c.state();
    EXPECT_EQ(saved.inputs.size(), 2U);
  }
  committer c(inputs_, all, options, &saved);
  EXPECT_FALSE(c.is_untouched());
  encoded_block b = block(1, 100, 3);
  add_document(b.columns[0], 2);
  b.places.push_back({});
  (void)c.commit(b);
  EXPECT_EQ(c.state().counts.lines, 6);
  EXPECT_EQ(c.state().outputs.wholes[0].bin_bytes, 4U);
  EXPECT_EQ(c.state().inputs[1].lines, 6);
}

}  // namespace
}  // namespace millrace::preprocess
