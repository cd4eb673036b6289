// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <millrace/error.hpp>

#include "merge/merge.hpp"
#include "merge/merge_sidecars.hpp"
#include "output/bad_record_line.hpp"
#include "support/paths.hpp"
#include "support/preprocess_files.hpp"
#include "support/tokenizers.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

const std::vector<std::string> suffixes = {".bin", ".idx", ".meta", ".sum", ".src", ".bad"};

// Makes each part in a run over one input. A run over all inputs gives the files for comparison.
class MergeSidecars : public testing::Test {
 protected:
  MergeSidecars() {
    fs::create_directory(folder_ / "in");
    fs::create_directory(folder_ / "to");
    // There are more documents than fit into one group of P.src, and more tokens than fit into one
    // block of P.sum.
    for (int input = 0; input < 3; ++input) {
      std::string text;
      for (int i = 0; i < 90 + input; ++i) {
        text += "{\"text\": \"" + std::string(static_cast<std::size_t>(i) * 137, 'x') + "\"}\n";
        if (i % 30 == 0) text += "no JSON\n\n";
      }
      inputs_.push_back((folder_ / ("input" + std::to_string(input))).string());
      test::write_text(inputs_.back(), text);
    }
  }

  void preprocess(const std::vector<std::string>& inputs, const std::string& prefix,
                  run_options how = {}) const {
    how.output_prefix = folder_ / prefix;
    how.on_bad_record = bad_record_policy::quarantine;
    test::preprocess_files(*tokenizer_, inputs, how);
  }
  void preprocess_parts() const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      preprocess({inputs_[i]}, "in/" + std::to_string(i));
    }
  }
  fs::path part(int number, const std::string& suffix) const {
    return folder_ / ("in/" + std::to_string(number) + "_text_document" + suffix);
  }
  fs::path merged(const std::string& suffix) const { return folder_ / ("to/all" + suffix); }
  merge_options options() const {
    return {.input = folder_ / "in", .output_prefix = folder_ / "to/all"};
  }
  template <class Error>
  std::string failure() const {
    try {
      (void)merge(options());
    } catch (const Error& e) {
      EXPECT_TRUE(fs::is_empty(folder_ / "to"));
      return e.what();
    }
    return "no error of the expected type";
  }

  test::temp_folder folder_;
  std::vector<std::string> inputs_;
  std::unique_ptr<tokenizer::tokenizer> tokenizer_ = test::byte_tokenizer();
};

TEST_F(MergeSidecars, EqualThoseOfOneRunOverAllInputs) {
  preprocess_parts();
  preprocess(inputs_, "whole");
  (void)merge(options());
  for (const std::string& suffix : suffixes) {
    EXPECT_TRUE(test::read_text(merged(suffix)) ==
                test::read_text(folder_ / ("whole_text_document" + suffix)))
        << suffix;
  }
}

TEST_F(MergeSidecars, AreThereOnlyIfAllPartsHaveThem) {
  for (const std::string& suffix : suffixes) {
    if (suffix == ".bin" || suffix == ".idx") continue;
    preprocess_parts();
    fs::remove(part(1, suffix));
    (void)merge(options());
    EXPECT_FALSE(fs::exists(merged(suffix))) << suffix;
    const bool has_meta = suffix != ".meta";
    EXPECT_EQ(fs::exists(merged(".meta")), has_meta);
    EXPECT_EQ(fs::exists(merged(".sum")), suffix != ".sum");
    EXPECT_EQ(fs::exists(merged(".src")), suffix != ".src" && has_meta);
    EXPECT_EQ(fs::exists(merged(".bad")), suffix != ".bad" && has_meta);
    if (suffix == ".sum") {
      EXPECT_THAT(test::read_text(merged(".meta")),
                  AllOf(HasSubstr("\"sum\": null"), HasSubstr("\"sum_root\": null")));
    }
    for (const fs::path& folder : {folder_ / "in", folder_ / "to"}) {
      for (const auto& entry : fs::directory_iterator(folder)) fs::remove(entry.path());
    }
  }
}

TEST_F(MergeSidecars, NameADamagedBlock) {
  preprocess_parts();
  for (const char* suffix : {".bin", ".idx"}) {
    const std::string whole = test::read_text(part(1, suffix));
    const std::size_t at = suffix == std::string(".bin") ? (std::size_t{1} << 20) + 5 : 50;
    ASSERT_GT(whole.size(), at);
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    test::write_text(part(1, suffix), damaged);
    EXPECT_THAT(failure<format_error>(), HasSubstr(part(1, suffix).string())) << suffix;
    test::write_text(part(1, suffix), whole);
  }
}

TEST_F(MergeSidecars, NameThePartThatWasMadeOtherwise) {
  preprocess_parts();
  for (const std::string& suffix : suffixes) fs::remove(part(1, suffix));
  run_options how;
  how.append_eod = true;
  preprocess({inputs_[1]}, "in/1", how);
  EXPECT_THAT(failure<config_error>(),
              AllOf(HasSubstr(part(1, ".meta").string()), HasSubstr("--append-eod")));
}

TEST_F(MergeSidecars, MustBeOfTheirDataset) {
  for (const char* suffix : {".meta", ".sum", ".src"}) {
    preprocess_parts();
    fs::copy_file(part(2, suffix), part(1, suffix), fs::copy_options::overwrite_existing);
    EXPECT_THAT(failure<format_error>(), HasSubstr(part(1, suffix).string())) << suffix;
    for (const auto& entry : fs::directory_iterator(folder_ / "in")) fs::remove(entry.path());
  }
}

// The merged P.bad would join the last line of a truncated part and the first line of the next.
TEST_F(MergeSidecars, BadRecordsMustBeWholeLines) {
  preprocess_parts();
  const fs::path path = part(1, ".bad");
  const std::string whole = test::read_text(path);
  const std::size_t second = whole.find('\n') + 1;
  const auto expect_refused = [&](const std::string& text, std::size_t offset,
                                  const std::string& what) {
    test::write_text(path, text);
    EXPECT_THAT(failure<format_error>(),
                AllOf(HasSubstr(path.string() + ": "), HasSubstr(what),
                      HasSubstr("(at byte " + std::to_string(offset) + ")")));
  };
  expect_refused(whole.substr(0, whole.size() - 1), whole.size() - 1, "expected a line end");
  expect_refused(whole.substr(0, second), second,
                 "expected the 4 bad records of the .meta, found 1");
  expect_refused(whole + whole.substr(0, second), whole.size(), "found another");
  expect_refused(whole.substr(0, second) + "\n" + whole.substr(second), second, "found ''");
  std::string other = whole;
  other[second + 2] = 'F';
  expect_refused(other, second, "expected {\"file\": TEXT, \"line\": 1 or more, ...}");
  const std::size_t number = whole.find(", \"byte\"", second);
  other = whole;
  other.insert(number, ", \"from_byte\": 7");
  expect_refused(other, number + 2, "\"from_byte\" is 7, expected 0");
  test::write_text(path, whole);
  (void)merge(options());
}

TEST_F(MergeSidecars, AnUnfinishedRunIsNamed) {
  preprocess_parts();
  test::write_text(folder_ / "in/3.journal", "");
  EXPECT_THAT(failure<config_error>(), AllOf(HasSubstr("3.journal"), HasSubstr("--resume")));
}

TEST(ShiftedBadLine, MovesOnlyWhatCountsFromWithinAFile) {
  const std::string raw = "x, \"line\": 9, \"from_byte\": 3";
  const record_fault fault{fault_kind::invalid_json, 0, "what"};
  bad_record record{
      .file = "a\"\\, \"line\": 7", .line = 5, .begin = 90, .size = 4, .fault = fault, .raw = &raw};
  const std::string whole = bad_record_line(record);
  EXPECT_EQ(shifted_bad_line(whole, 10, 0), std::nullopt);

  record.from = 80;
  const std::string of_task = bad_record_line(record);
  record.line = 15;
  EXPECT_EQ(shifted_bad_line(of_task, 10, 60), bad_record_line([&] {
              bad_record moved = record;
              moved.from = 60;
              return moved;
            }()));
  record.from = 0;
  EXPECT_EQ(shifted_bad_line(of_task, 10, 0), bad_record_line(record));
  EXPECT_EQ(shifted_bad_line("", 1, 0), std::nullopt);
  EXPECT_EQ(shifted_bad_line("{\"file\": \"cut off", 1, 0), std::nullopt);
}

}  // namespace
}  // namespace millrace::preprocess
