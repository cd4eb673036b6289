// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/gpt_cache.hpp>
#include <millrace/dataset/detail/packing/packed_rows.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/paths.hpp"

namespace millrace::dataset {
namespace {

using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

class GptCache : public testing::Test {
 protected:
  formats::unaligned_span<std::int32_t> lengths() const {
    return formats::unaligned_span<std::int32_t>(std::as_bytes(std::span(lengths_)));
  }
  gpt_plan plan(const gpt_request& request) const {
    const sequence_range all{0, static_cast<std::int64_t>(lengths_.size())};
    return plan_gpt_index(request, all, count_tokens(lengths(), all, 0), "data");
  }
  gpt_plan plan() const { return plan(request_); }
  gpt_cache cache() const { return {folder_ / "cache", description_}; }
  std::vector<fs::path> paths() const {
    return {cache().description_path(), cache().document_path(), cache().sample_path(),
            cache().shuffle_path()};
  }
  std::string unfit(const gpt_plan& other) const {
    try {
      (void)cache().load(other, lengths());
    } catch (const format_error& e) {
      return e.what();
    }
    return "accepted";
  }

  test::temp_folder folder_{test::quick_folder()};
  std::vector<std::int32_t> lengths_ = {7, 0, 12, 5, 9, 1, 30, 8};
  gpt_request request_{.sequence_length = 4, .num_samples = 40};
  gpt_description description_{"data", 40, split_part::train, 1234, 4, "1", python_json::object()};
};

TEST_F(GptCache, GivesBackWhatWasBuilt) {
  EXPECT_FALSE(cache().load(plan(), lengths()));
  bool built = false;
  const gpt_order first = cache().load_or_build(plan(), lengths(), "data", 1, &built);
  EXPECT_TRUE(built);
  const gpt_order second = cache().load_or_build(plan(), lengths(), "data", 2, &built);
  EXPECT_FALSE(built);
  const gpt_order memory(plan(), lengths(), view_of(build_gpt_index(plan(), lengths(), "data")));
  ASSERT_EQ(first.size(), 53);
  for (std::int64_t k = 0; k < first.size(); ++k) {
    ASSERT_EQ(first.sample(k), memory.sample(k));
    ASSERT_EQ(second.sample(k), memory.sample(k));
  }
  EXPECT_EQ(test::read_text(cache().description_path()), description_.text());
}

// A file that is missing or truncated at any byte counts as damaged, so the cache is built again.
TEST_F(GptCache, TrustsNoTruncatedFile) {
  cache().build(plan(), lengths(), "data");
  for (const fs::path& path : paths()) {
    const auto whole = test::read_bytes(path);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      test::write_bytes(path, std::span(whole).first(size));
      std::string why;
      ASSERT_FALSE(cache().load(plan(), lengths(), &why)) << path << " cut at " << size;
      ASSERT_THAT(why, HasSubstr(path.filename().string()));
    }
    fs::remove(path);
    EXPECT_FALSE(cache().load(plan(), lengths())) << path;
    bool built = false;
    (void)cache().load_or_build(plan(), lengths(), "data", 1, &built);
    EXPECT_TRUE(built);
    EXPECT_EQ(test::read_bytes(path), whole);
  }
}

// Files that were made with other options or from other data are refused. Megatron's file names do
// not contain these options, so a run with other options finds the same files.
TEST_F(GptCache, RefusesWhatWasMadeForSomethingElse) {
  cache().build(plan(), lengths(), "data");
  gpt_request other = request_;
  other.sequence_length = 5;
  EXPECT_THAT(unfit(plan(other)),
              AllOf(HasSubstr("sample_index.npy: has dtype <i4 and shape (54, 2), expected <i4 or "
                              "<i8 and (44, 2): the cache was made for other data"),
                    HasSubstr("--data-cache-path (at byte 10)")));
  other = request_;
  other.add_extra_token = false;
  EXPECT_THAT(unfit(plan(other)), HasSubstr("with other options"));

  std::swap(lengths_[0], lengths_[3]);  // same counts of tokens, sequences and samples
  EXPECT_THAT(unfit(plan()), AllOf(HasSubstr("sample_index.npy"), HasSubstr("other data")));
}

// One entry of the shuffle index refers to the wrong sample. The quick check looks at a few samples
// and cannot find this damage; the full check finds it.
TEST_F(GptCache, FindsDamageOnAFullCheck) {
  request_.num_samples = 4000;
  cache().build(plan(), lengths(), "data");
  const auto whole = test::read_bytes(cache().shuffle_path());
  auto damaged = whole;
  std::copy_n(damaged.end() - 8, 4, damaged.end() - 12);
  test::write_bytes(cache().shuffle_path(), damaged);
  EXPECT_TRUE(cache().load(plan(), lengths()));
  try {
    (void)cache().load(plan(), lengths(), nullptr, check_level::full);
    ADD_FAILURE() << "accepted";
  } catch (const format_error& e) {
    EXPECT_EQ(e.path(), cache().shuffle_path());
    EXPECT_EQ(e.offset(), whole.size() - 8);
    EXPECT_THAT(e.problem(),
                AllOf(HasSubstr("as an entry before it is"), HasSubstr("or it is damaged")));
  }
  test::write_bytes(cache().shuffle_path(), whole);
  EXPECT_TRUE(cache().load(plan(), lengths(), nullptr, check_level::full));
}

// A description with another text is named with both hashes and its first other byte.
TEST_F(GptCache, NamesTheByteOfAnotherDescription) {
  cache().build(plan(), lengths(), "data");
  const std::string text = description_.text();
  std::string other = text;
  other[text.find("1234")] = '2';
  test::write_text(cache().description_path(), other);
  std::string why;
  EXPECT_FALSE(cache().load(plan(), lengths(), &why));
  EXPECT_THAT(why, HasSubstr("description.txt: the description has the MD5 " +
                             formats::md5_hex(other) + ", expected " + formats::md5_hex(text)));
  EXPECT_THAT(why, HasSubstr("(at byte " + std::to_string(text.find("1234")) + ")"));
}

// Megatron never writes a document index of int64.
TEST_F(GptCache, RefusesADocumentIndexOfInt64) {
  cache().build(plan(), lengths(), "data");
  const std::vector<std::int64_t> entries(static_cast<std::size_t>(plan().document_entries()));
  const std::vector<std::uint64_t> shape = {entries.size()};
  test::write_bytes(cache().document_path(), formats::encode_npy(std::span(entries), shape));
  EXPECT_THAT(unfit(plan()), HasSubstr("has dtype <i8"));
}

TEST_F(GptCache, ReadsInt64WhereOthersWriteInt32) {
  gpt_plan wide = plan();
  wide.wide_sample_index = wide.wide_shuffle_index = true;
  cache().build(wide, lengths(), "data");
  const auto order = cache().load(plan(), lengths());
  ASSERT_TRUE(order);
  const gpt_order memory(plan(), lengths(), view_of(build_gpt_index(plan(), lengths(), "data")));
  for (std::int64_t k = 0; k < order->size(); ++k) EXPECT_EQ(order->sample(k), memory.sample(k));
}

TEST_F(GptCache, LeavesNothingOfABuildThatFails) {
  fs::create_directories(cache().shuffle_path());  // a folder where a file is expected
  EXPECT_THROW(cache().build(plan(), lengths(), "data", 2), io_error);
  int entries = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "cache")) {
    EXPECT_EQ(entry.path(), cache().shuffle_path());
    ++entries;
  }
  EXPECT_EQ(entries, 1);
}

// Partial files next to a complete cache are removed. A process leaves such files if it is killed
// between its renames while it replaces an old cache.
TEST_F(GptCache, RemovesStalePartialFilesOfAWholeCache) {
  cache().build(plan(), lengths(), "data");
  for (const fs::path& path : paths()) test::write_text(path.string() + ".partial", "stale");
  {
    const io::atomic_file writer(cache().description_path());
    (void)cache().load_or_build(plan(), lengths(), "data");
    for (const fs::path& path : paths()) {
      EXPECT_TRUE(fs::exists(path.string() + ".partial")) << "a living writer holds it";
    }
  }
  test::write_text(cache().description_path().string() + ".partial", "stale");
  bool built = true;
  (void)cache().load_or_build(plan(), lengths(), "data", 1, &built);
  EXPECT_FALSE(built);
  for (const fs::path& path : paths()) EXPECT_FALSE(fs::exists(path.string() + ".partial"));
}

TEST_F(GptCache, IsBuiltOnceByManyAtATime) {
  std::vector<std::thread> threads;
  threads.reserve(8);
  std::atomic<int> sound = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const gpt_order order = cache().load_or_build(plan(), lengths(), "data");
      sound += order.size() == 53;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sound, 8);
}

TEST_F(GptCache, HasMegatronsDefaultFolder) {
  EXPECT_EQ(gpt_cache::default_folder("a/web_text_document"),
            fs::path("a/web_text_document/cache/GPTDataset_indices"));
}

// If a cache file is truncated while a run uses it, the run gets an error and the process survives.
TEST_F(GptCache, OutlivesAFileThatShrinks) {
  for (std::size_t file = 1; file <= 3; ++file) {  // each index file
    for (const fs::path& path : paths()) fs::remove(path);
    (void)cache().load_or_build(plan(), lengths(), "data", 1);
    const auto order = cache().load(plan(), lengths());
    ASSERT_TRUE(order);
    EXPECT_FALSE(order->sample(20).empty());
    fs::resize_file(paths()[file], 0);
    for (int again = 0; again < 2; ++again) {
      try {
        (void)order->sample(20);
        FAIL() << "accepted";
      } catch (const io_error& e) {
        EXPECT_EQ(e.code(), ENODATA);
        EXPECT_EQ(e.path(), paths()[file]);
        EXPECT_TRUE(e.offset().has_value());
      }
    }
  }
}

// After a cache file became shorter, no kind of access returns an answer from it. Each kind is
// tested with a new order, because an order remembers that a page was lost.
TEST_F(GptCache, AnswersNothingOutOfAFileThatShrank) {
  using reading = std::function<void(const gpt_order&)>;
  const reading by_token = [](const gpt_order& order) { (void)order.samples_with(0, 0); };
  const reading by_range = [](const gpt_order& order) { (void)order.samples_with({0, 2}); };
  const reading behind = [](const gpt_order& order) { (void)order.behind_last_sample(); };
  const reading unshuffled = [](const gpt_order& order) {
    std::vector<piece> pieces;
    (void)order.unshuffled_sample(20, pieces);
  };
  struct reader {
    reading read;
    std::vector<std::size_t> files;  // indices of the files that `read` reads
  };
  for (const auto& [read, files] : {reader{by_token, {1, 2, 3}}, reader{by_range, {1, 2, 3}},
                                    reader{behind, {1, 2}}, reader{unshuffled, {1, 2}}}) {
    for (const std::size_t file : files) {
      for (const fs::path& path : paths()) fs::remove(path);
      (void)cache().load_or_build(plan(), lengths(), "data", 1);
      const auto order = cache().load(plan(), lengths());
      ASSERT_TRUE(order);
      fs::resize_file(paths()[file], 0);
      try {
        read(*order);
        FAIL() << "accepted, without file " << file;
      } catch (const io_error& e) {
        EXPECT_EQ(e.path(), paths()[file]);
      }
    }
  }
}

}  // namespace
}  // namespace millrace::dataset
