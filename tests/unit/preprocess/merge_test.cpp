// SPDX-License-Identifier: Apache-2.0
#include "merge/merge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/mmidx.hpp>

#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/odd_mask.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using formats::dtype;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct part {
  dtype type = dtype::uint16;
  std::vector<std::byte> bin = {};
  std::vector<std::int32_t> lengths = {};
  std::vector<std::int64_t> document_index = {0};
  std::vector<std::int8_t> modes = {};
};

part random_part(std::mt19937_64& random, dtype type, std::size_t sequences, bool modes) {
  part made;
  made.type = type;
  for (std::size_t i = 0; i < sequences; ++i) {
    made.lengths.push_back(static_cast<std::int32_t>(random() % 4));
    if (modes) made.modes.push_back(static_cast<std::int8_t>(random() % 256));
    for (; random() % 2 == 0;) made.document_index.push_back(static_cast<std::int64_t>(i));
  }
  made.document_index.push_back(static_cast<std::int64_t>(sequences));
  made.bin.resize(formats::size_bytes(type) *
                  static_cast<std::size_t>(
                      std::accumulate(made.lengths.begin(), made.lengths.end(), std::int64_t{0})));
  for (std::byte& b : made.bin) b = static_cast<std::byte>(random());
  return made;
}

// Does in memory what Megatron's add_index does.
void add(part& to, const part& from) {
  const auto before = static_cast<std::int64_t>(to.lengths.size());
  to.bin.insert(to.bin.end(), from.bin.begin(), from.bin.end());
  to.lengths.insert(to.lengths.end(), from.lengths.begin(), from.lengths.end());
  to.modes.insert(to.modes.end(), from.modes.begin(), from.modes.end());
  for (std::size_t i = 1; i < from.document_index.size(); ++i) {
    to.document_index.push_back(before + from.document_index[i]);
  }
}

class Merge : public testing::Test {
 protected:
  Merge() {
    fs::create_directory(folder_ / "in");
    fs::create_directory(folder_ / "to");
  }
  fs::path in(const std::string& name) const { return folder_ / "in" / name; }

  void write(const std::string& name, const part& p) const {
    test::write_bytes(in(name + ".bin"), p.bin);
    test::write_bytes(in(name + ".idx"),
                      formats::encode_mmidx(p.type, p.lengths, p.document_index, p.modes));
  }
  void write_two() const {
    std::mt19937_64 random(1);
    write("a", random_part(random, dtype::uint16, 5, false));
    write("b", random_part(random, dtype::uint16, 5, false));
  }
  merge_options options(bool multimodal = false) const {
    return {.input = folder_ / "in", .output_prefix = folder_ / "to/all", .multimodal = multimodal};
  }
  void expect_output(const part& wanted) const {
    EXPECT_TRUE(test::read_bytes(folder_ / "to/all.bin") == wanted.bin);
    EXPECT_TRUE(
        test::read_bytes(folder_ / "to/all.idx") ==
        formats::encode_mmidx(wanted.type, wanted.lengths, wanted.document_index, wanted.modes));
  }

  // Returns the message of the error that merge() throws. Expects that no output file was left.
  template <class Error>
  std::string failure(const merge_options& options) const {
    std::string message = "no error of the expected type";
    try {
      (void)merge(options);
    } catch (const Error& e) {
      message = e.what();
    }
    EXPECT_TRUE(fs::is_empty(folder_ / "to"));
    return message;
  }

  // Changes a number in in/b.idx and returns merge's error message.
  template <class T>
  std::string failure_with(std::size_t offset, T value) const {
    auto bytes = test::read_bytes(in("b.idx"));
    std::memcpy(bytes.data() + offset, &value, sizeof(T));
    test::write_bytes(in("b.idx"), bytes);
    return failure<format_error>(options());
  }

  test::temp_folder folder_;
};

TEST_F(Merge, JoinsMasks) {
  std::mt19937_64 random(test::seed(3));
  for (int round = 0; round < 20; ++round) {
    for (const char* name : {"a", "b", "c"}) {
      write(name, random_part(random, dtype::int32, random() % 30, false));
      test::write_odd_mask(in(name));
    }
    (void)merge({.input = folder_ / "in", .output_prefix = folder_ / "to/all", .overwrite = true});
    test::expect_odd_mask(folder_ / "to/all");
  }
}

// Without a mask, a model learns from all tokens, so a merge never drops one.
TEST_F(Merge, RefusesAMaskThatItCannotKeep) {
  write_two();
  test::write_odd_mask(in("b"));
  const auto refusal = [&] {
    try {
      (void)merge({.input = folder_ / "in", .output_prefix = folder_ / "to/all"});
    } catch (const error& e) {
      EXPECT_TRUE(fs::is_empty(folder_ / "to"));
      return std::string(e.what());
    }
    return std::string("merged");
  };
  EXPECT_THAT(refusal(), AllOf(HasSubstr("there is no "), HasSubstr("a.mask"),
                               HasSubstr("merge only datasets with masks")));
  test::write_odd_mask(in("a"));
  auto mask = test::read_bytes(in("a.mask"));
  auto changed = mask;
  changed[32] ^= std::byte{1};
  test::write_bytes(in("a.mask"), changed);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("a.mask: the "), HasSubstr("differ from those that")));
  formats::bit_buffer bits;
  bits.append_run(true, 3);
  test::write_bytes(in("a.mask"), test::encode_mask(bits.bits()));
  EXPECT_THAT(refusal(), HasSubstr("it has bits for 3 tokens, but the .bin has"));
  test::write_bytes(in("a.mask"), mask);
  EXPECT_EQ(refusal(), "merged");
}

TEST_F(Merge, EqualsTheConcatenationInMemory) {
  std::mt19937_64 random(test::seed(31));
  for (const bool multimodal : {false, true}) {
    for (const dtype type : {dtype::uint8, dtype::uint16, dtype::int32, dtype::int64}) {
      part wanted;
      wanted.type = type;
      for (const char* name : {"a", "b", "c"}) {
        const part p = random_part(random, type, random() % 40, multimodal);
        write(name, p);
        add(wanted, p);
      }
      auto how = options(multimodal);
      how.overwrite = true;
      const merge_summary summary = merge(how);
      expect_output(wanted);
      EXPECT_EQ(summary.type, type);
      EXPECT_EQ(summary.sequences, static_cast<std::int64_t>(wanted.lengths.size()));
      EXPECT_EQ(summary.documents, static_cast<std::int64_t>(wanted.document_index.size()) - 1);
      EXPECT_EQ(summary.tokens,
                static_cast<std::int64_t>(wanted.bin.size() / formats::size_bytes(type)));
    }
  }
}

// Large parts are copied piece by piece: they have more entries and bytes than are copied at a
// time.
TEST_F(Merge, CopiesLargePartsPieceByPiece) {
  std::mt19937_64 random(test::seed(32));
  part wanted;
  wanted.type = dtype::int64;
  for (const char* name : {"a", "b"}) {
    const part p = random_part(random, dtype::int64, 140'000, true);
    write(name, p);
    add(wanted, p);
  }
  ASSERT_GT(wanted.document_index.size(), 262'144U);
  (void)merge(options(true));
  expect_output(wanted);
}

// Parts are taken in the byte order of their names. Megatron also sorts by code point, so 10 comes
// before 2. Another order would give another dataset.
TEST_F(Merge, TakesPartsInTheOrderOfTheBytesOfTheirNames) {
  std::mt19937_64 random(33);
  for (const char* name : {"p_2", "p_10", "p_1", "p_1.5", "P", "p_\xC3\xA4", "p"}) {
    write(name, random_part(random, dtype::uint16, 2, false));
  }
  std::vector<std::string> names;
  for (const auto& prefix : merge(options()).prefixes) names.push_back(prefix.filename().string());
  EXPECT_THAT(names, ElementsAre("P", "p", "p_1", "p_1.5", "p_10", "p_2", "p_\xC3\xA4"));
}

TEST_F(Merge, TakesEmptyPartsAnywhere) {
  std::mt19937_64 random(34);
  const part some = random_part(random, dtype::uint16, 3, false);
  part wanted;
  for (const auto& [name, p] :
       {std::pair("a", part{}), std::pair("b", some), std::pair("c", part{}), std::pair("d", some),
        std::pair("e", part{})}) {
    write(name, p);
    add(wanted, p);
  }
  (void)merge(options());
  expect_output(wanted);
}

// Without --multimodal, the modes are dropped, as in Megatron's text reader.
TEST_F(Merge, DropsModesUnlessTheyAreAskedFor) {
  std::mt19937_64 random(35);
  part p = random_part(random, dtype::uint16, 9, true);
  write("a", p);
  (void)merge(options(false));
  p.modes.clear();
  expect_output(p);
}

TEST_F(Merge, CopiesOneDatasetAsItIs) {
  std::mt19937_64 random(36);
  const part p = random_part(random, dtype::uint16, 9, false);
  write("only", p);
  (void)merge(options());
  expect_output(p);
}

TEST_F(Merge, TakesAFileWithOneOtherSuffixAlong) {
  write_two();
  test::write_text(in("a.sum"), "0123");
  EXPECT_EQ(merge(options()).prefixes.size(), 2U);
}

TEST_F(Merge, PassesOverFolders) {
  write_two();
  fs::create_directory(in("folder"));
  EXPECT_EQ(merge(options()).prefixes.size(), 2U);
}

// A .bin without its .idx, or the reverse, is an error. The dataset may be a whole day's work, so
// the merge must not skip it.
TEST_F(Merge, NamesAFileThatBelongsToNoDataset) {
  write_two();
  fs::remove(in("b.idx"));
  EXPECT_THAT(failure<config_error>(options()),
              AllOf(HasSubstr(in("b.bin").string()), HasSubstr(in("b.idx").string())));
}

TEST_F(Merge, NamesALeftPartialFile) {
  write_two();
  test::write_text(in("b.bin.partial"), "");
  EXPECT_THAT(failure<config_error>(options()), HasSubstr(in("b.bin.partial").string()));
}

TEST_F(Merge, NamesAFolderThatIsNotThere) {
  auto how = options();
  how.input = folder_ / "none";
  EXPECT_THAT(failure<config_error>(how), HasSubstr(how.input.string()));
}

TEST_F(Merge, NamesAFileGivenForTheFolder) {
  test::write_text(in("x"), "");
  auto how = options();
  how.input = in("x");
  EXPECT_THAT(failure<config_error>(how), HasSubstr(how.input.string()));
}

TEST_F(Merge, NamesAFolderWithoutDatasets) {
  EXPECT_THAT(failure<config_error>(options()), HasSubstr((folder_ / "in").string()));
}

TEST_F(Merge, NamesTheTwoFilesWhoseTypesDiffer) {
  write_two();
  part other;
  other.type = dtype::int32;
  write("c", other);
  EXPECT_THAT(failure<config_error>(options()),
              AllOf(HasSubstr(in("c.bin").string()), HasSubstr("int32"),
                    HasSubstr(in("a.bin").string()), HasSubstr("uint16")));
}

TEST_F(Merge, NamesADatasetWithoutModes) {
  std::mt19937_64 random(37);
  write("a", random_part(random, dtype::uint16, 3, true));
  write("b", random_part(random, dtype::uint16, 3, false));
  EXPECT_THAT(failure<config_error>(options(true)), HasSubstr(in("b.idx").string()));
}

// A merge must not write into the folder of its inputs. Otherwise, the next merge of this folder
// would use the output as an input.
TEST_F(Merge, RefusesToWriteAmongItsInputs) {
  write_two();
  auto how = options();
  how.output_prefix = folder_ / "to/../in/all";
  EXPECT_THAT(failure<config_error>(how), HasSubstr("this is the input folder"));
  EXPECT_FALSE(fs::exists(in("all.bin")));
}

TEST_F(Merge, NamesAnOutputFolderThatIsNotThere) {
  write_two();
  auto how = options();
  how.output_prefix = folder_ / "none/all";
  EXPECT_THAT(failure<config_error>(how), HasSubstr((folder_ / "none").string()));
}

TEST_F(Merge, KeepsAnExistingOutput) {
  write_two();
  for (const char* old : {"to/all.bin", "to/all.idx"}) {
    test::write_text(folder_ / old, "old");
    EXPECT_THROW((void)merge(options()), config_error);
    EXPECT_EQ(test::read_text(folder_ / old), "old");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "to"), {}), 1);
    fs::remove(folder_ / old);
  }
}

TEST_F(Merge, ReplacesAnExistingOutputOnDemand) {
  write_two();
  test::write_text(folder_ / "to/all.bin", std::string(10'000, 'x'));
  auto how = options();
  how.overwrite = true;
  (void)merge(how);
  EXPECT_EQ(fs::file_size(folder_ / "to/all.bin"),
            fs::file_size(in("a.bin")) + fs::file_size(in("b.bin")));
}

TEST_F(Merge, RefusesABinOfAnotherSizeThanTheIdxSays) {
  write_two();
  const auto bytes = test::read_bytes(in("b.bin"));
  for (const std::size_t size : {bytes.size() - 1U, bytes.size() + 1U, std::size_t{0}}) {
    auto other = bytes;
    other.resize(size);
    test::write_bytes(in("b.bin"), other);
    EXPECT_THAT(failure<format_error>(options()), HasSubstr(in("b.bin").string())) << size;
  }
}

TEST_F(Merge, RefusesEveryTruncatedIdx) {
  write_two();
  const auto whole = test::read_bytes(in("b.idx"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    test::write_bytes(in("b.idx"), std::span(whole).first(size));
    EXPECT_THAT(failure<format_error>(options()), HasSubstr(in("b.idx").string())) << size;
  }
}

// Faults in the middle of the arrays are refused. The output's pointers are computed from the
// lengths of the sequences. Suppose that the pointers of an input contradict its lengths. Without
// this check, the merge would silently change such an input.
TEST_F(Merge, RefusesFaultsInTheMiddleOfTheArrays) {
  part p;
  p.bin.resize(20);
  p.lengths = {2, 3, 1, 4};
  p.document_index = {0, 1, 3, 4};
  const std::size_t lengths = 34;
  const std::size_t pointers = lengths + std::size_t{4} * 4;
  const std::size_t documents = pointers + std::size_t{8} * 4;
  const std::vector<std::function<std::string()>> faults = {
      [&] { return failure_with<std::int32_t>(lengths + 4, -1); },
      [&] { return failure_with<std::int32_t>(lengths + 4, 4); },
      [&] { return failure_with<std::int32_t>(lengths, 2'147'483'647); },
      [&] { return failure_with<std::int64_t>(pointers + 8, 5); },
      [&] { return failure_with<std::int64_t>(pointers + 16, -10); },
      [&] { return failure_with<std::int64_t>(documents + 16, 0); },
      [&] { return failure_with<std::int64_t>(documents + 16, 5); },
      [&] { return failure_with<std::int64_t>(documents + 8, -1); },
  };
  for (std::size_t i = 0; i < faults.size(); ++i) {
    write("a", p);
    write("b", p);
    EXPECT_THAT(faults[i](), AllOf(HasSubstr(in("b.idx").string()), HasSubstr("at byte")))
        << "fault " << i;
  }
}

}  // namespace
}  // namespace millrace::preprocess
