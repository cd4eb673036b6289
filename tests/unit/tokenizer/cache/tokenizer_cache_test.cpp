// SPDX-License-Identifier: Apache-2.0
#include "cache/tokenizer_cache.hpp"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/error.hpp>

#include "cache/cache_file.hpp"
#include "hugging_face/hugging_face_tokenizer.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/rank_vocabulary.hpp"
#include "support/same_tokenizer.hpp"
#include "support/small_vocabulary.hpp"

namespace millrace::tokenizer::detail {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::vector<std::string_view> texts = {
    "",
    "ab",
    "abc ab <s> <x>  a\nbc",
    "a long word: abababababababababababababababababababababab",
    "caf\u00e9 cafe\u0301 \u4e16\u754c<s>",
    " 12345 Don't"};

class TokenizerCache : public testing::Test {
 protected:
  void SetUp() override {
    test::write_text(files_ / "vocab.json", vocab_);
    test::write_text(files_ / "merges.txt", "a b\nab c\n");
    test::write_text(files_ / "small.tiktoken", test::rank_vocabulary({"ab", "abc"}).rank_file());
    test::write_text(files_ / "small.vocab.json", test::rank_vocabulary({"ab"}).megatron_json());
  }

  tokenizer_options gpt2() const {
    tokenizer_options options = cached("GPT2BPETokenizer");
    options.vocab_file = files_ / "vocab.json";
    options.merge_file = files_ / "merges.txt";
    return options;
  }
  tokenizer_options ranks() const {
    tokenizer_options options = cached("TikTokenizer");
    options.model = files_ / "small.tiktoken";
    options.tiktoken_pattern = "cl100k";
    options.special_tokens = {"<s>"};
    return options;
  }
  tokenizer_options megatron() const {
    tokenizer_options options = cached("TikTokenizer");
    options.model = files_ / "small.vocab.json";
    options.vocab_size = 277;
    options.tiktoken_num_special_tokens = 20;
    return options;
  }
  // A tokenizer.json with `more` entries, in the folder tokenizer/.
  tokenizer_options hugging_face(const std::string& more, const std::string& model = "") const {
    const fs::path folder = files_ / "tokenizer";
    fs::create_directories(folder);
    test::write_text(folder / "tokenizer.json", "{" + more + R"("model":{"type":"BPE",)" + model +
                                                    R"("vocab":)" + vocab_ +
                                                    R"(,"merges":["a b","ab c"]}})");
    tokenizer_options options = cached("HuggingFaceTokenizer");
    options.model = folder;
    return options;
  }

  // Loads through the cache. `made_` counts how often the tokenizer was made of its files.
  std::unique_ptr<tokenizer> load(const tokenizer_options& options,
                                  std::string_view build = "build") {
    tokenizer_options plain = options;
    plain.cache.clear();
    return make_with_cache(
        options,
        [&] {
          ++made_;
          return make_tokenizer(plain);
        },
        build);
  }
  // Whether load() takes the tokenizer from the cache.
  bool is_cached(const tokenizer_options& options, std::string_view build = "build") {
    const int before = made_;
    (void)load(options, build);
    return made_ == before;
  }

  void expect_same_from_cache(const tokenizer_options& options) {
    tokenizer_options plain = options;
    plain.cache.clear();
    const auto expected = make_tokenizer(plain);
    made_ = 0;
    const auto stored = load(options);
    const auto found = load(options);
    EXPECT_EQ(made_, 1);
    test::expect_same(*stored, *expected, texts);
    test::expect_same(*found, *expected, texts);
    EXPECT_EQ(stored->notes(), expected->notes());
    EXPECT_EQ(found->notes(), expected->notes());
  }

  // The cache's only file.
  fs::path file() const {
    std::vector<fs::path> all;
    for (const auto& each : fs::directory_iterator(cache_)) all.push_back(each.path());
    return all.size() == 1 ? all.front() : fs::path(std::to_string(all.size()) + " files");
  }

  const std::string vocab_ = test::small_vocabulary::json(
      test::small_vocabulary::bytes_and({"ab", "abc", "<s>", "\u0120x"}));
  const test::temp_folder files_;
  const test::temp_folder parent_{test::quick_folder()};
  const fs::path cache_ = parent_ / "cache";
  int made_ = 0;

 private:
  tokenizer_options cached(const char* type) const {
    tokenizer_options options;
    options.type = type;
    options.cache = cache_;
    return options;
  }
};

TEST_F(TokenizerCache, GivesTheSameTokenizer) {
  expect_same_from_cache(gpt2());
  expect_same_from_cache(ranks());
  expect_same_from_cache(megatron());
  auto options = ranks();
  options.in_text = special_tokens_in_text::error;
  options.eod_token = "<s>";
  expect_same_from_cache(options);
  options = gpt2();
  options.eod_token = "abc";
  options.special_tokens = {"<x>"};
  expect_same_from_cache(options);
}

TEST_F(TokenizerCache, GivesTheSameTokenizerOfATokenizerJson) {
  const std::string byte_level =
      R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true},)";
  const std::string spaced =
      R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":true,"use_regex":true},)";
  const std::string nfc = R"("normalizer":{"type":"NFC"},)";
  const std::string decoder = R"("decoder":{"type":"ByteLevel"},)";
  const std::string odd_decoder = R"("decoder":{"type":"Odd"},)";  // has a note
  const std::string tokens =
      R"("added_tokens":[{"id":258,"content":"<s>","single_word":false,"lstrip":true,)"
      R"("rstrip":true,"normalized":false,"special":true},{"id":300,"content":"<x>",)"
      R"("single_word":true,"lstrip":false,"rstrip":false,"normalized":true,"special":false}],)";
  const std::string around = R"("post_processor":{"type":"BertProcessing","cls":["<s>",258],)"
                             R"("sep":["abc",257]},)";
  for (const std::string& more :
       {byte_level, spaced, byte_level + nfc + decoder, byte_level + odd_decoder,
        spaced + nfc + tokens + around + decoder}) {
    SCOPED_TRACE(more);
    auto options = hugging_face(more);
    options.model /= "tokenizer.json";
    expect_same_from_cache(options);
    options.hf_include_special_tokens = false;
    options.in_text = special_tokens_in_text::encode_as_text;
    expect_same_from_cache(options);
  }
  expect_same_from_cache(hugging_face(byte_level, R"("ignore_merges":true,)"));
}

TEST_F(TokenizerCache, HoldsEachSetOfOptions) {
  const std::vector<std::function<void(tokenizer_options&)>> changes = {
      [](auto&) {},
      [](auto& o) {
        o.special_tokens = {"<s>", "<x>"};
      },
      [](auto& o) { o.special_tokens = {"<s><x>"}; },
      [](auto& o) { o.eod_token = "ab"; },
      [](auto& o) {
        o.tiktoken_pattern = "llama3";
        o.special_tokens = {"<s>"};
      },
      [](auto& o) { o.in_text = special_tokens_in_text::allow; },
      [](auto& o) { o.in_text = special_tokens_in_text::error; }};
  for (const auto& change : changes) {
    auto options = ranks();
    change(options);
    expect_same_from_cache(options);  // fails if it takes the file of other options
  }
  for (const auto& change : changes) {
    auto options = ranks();
    change(options);
    EXPECT_TRUE(is_cached(options));
  }
}

TEST_F(TokenizerCache, HoldsTheOptionsOfOtherTypes) {
  EXPECT_FALSE(is_cached(megatron()));
  auto options = megatron();
  options.vocab_size = 276;
  EXPECT_FALSE(is_cached(options));
  options.tiktoken_num_special_tokens = 19;
  EXPECT_FALSE(is_cached(options));
  EXPECT_FALSE(is_cached(hugging_face(R"("pre_tokenizer":{"type":"ByteLevel",)"
                                      R"("add_prefix_space":false},)")));
  options = hugging_face(R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)");
  options.hf_include_special_tokens = false;
  EXPECT_FALSE(is_cached(options));
}

// Neither the size nor the time of the file tells that it was changed.
TEST_F(TokenizerCache, NoticesAChangedFile) {
  (void)load(gpt2());
  ASSERT_TRUE(is_cached(gpt2()));
  std::string other_vocab = vocab_;
  other_vocab.replace(other_vocab.find("\"a\": 97"), 7, "\"a\": 98");
  other_vocab.replace(other_vocab.find("\"b\": 98"), 7, "\"b\": 97");
  const std::vector<std::pair<fs::path, std::string>> changes = {
      {files_ / "vocab.json", other_vocab}, {files_ / "merges.txt", "ab c\na b\n"}};
  for (const auto& [path, after] : changes) {
    const std::string before = test::read_text(path);
    const auto time = fs::last_write_time(path);
    ASSERT_EQ(after.size(), before.size());
    ASSERT_NE(after, before);
    test::write_text(path, after);
    fs::last_write_time(path, time);
    expect_same_from_cache(gpt2());
    test::write_text(path, before);
    EXPECT_TRUE(is_cached(gpt2())) << "the earlier file is there again";
  }
}

TEST_F(TokenizerCache, DependsOnEachFileOfAFolder) {
  const auto options =
      hugging_face(R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)");
  (void)load(options);
  for (const std::string name : files_of_tokenizer_folder) {
    SCOPED_TRACE(name);
    const fs::path path = options.model / name;
    const bool was_there = fs::exists(path);
    ASSERT_TRUE(is_cached(options));
    test::write_text(path, was_there ? test::read_text(path) + " " : "{}");
    EXPECT_FALSE(is_cached(options));
    ASSERT_TRUE(is_cached(options));
    test::write_text(path, test::read_text(path) + " ");
    EXPECT_FALSE(is_cached(options));
  }
  test::write_text(options.model / "README.md", "is not read");
  EXPECT_TRUE(is_cached(options));
}

TEST_F(TokenizerCache, OfAnotherBuildIsNotUsed) {
  EXPECT_FALSE(is_cached(gpt2()));
  EXPECT_FALSE(is_cached(gpt2(), "another build"));
  EXPECT_TRUE(is_cached(gpt2()));
  EXPECT_EQ(std::string_view(source_digest).size(), 64U);
}

TEST_F(TokenizerCache, IsMadeAgainIfItWasDamaged) {
  (void)load(ranks());
  const fs::path path = file();
  const std::string whole = test::read_text(path);
  auto plain = ranks();
  plain.cache.clear();
  const auto expected = make_tokenizer(plain);
  const auto expect_mended = [&](std::string damaged) {
    test::write_text(path, damaged);
    made_ = 0;
    const auto found = load(ranks());
    EXPECT_EQ(made_, 1);
    EXPECT_EQ(found->fingerprint(), expected->fingerprint());
    EXPECT_TRUE(found->notes().empty());
    EXPECT_TRUE(test::read_text(path) == whole) << "the file is not written again";
  };
  // cache_file_test.cpp alters each bit of a small file. Here, the header and samples of the rest.
  for (std::size_t at = 0; at < whole.size(); at += at < 64 ? 1 : 4099) {
    SCOPED_TRACE(at);
    std::string altered = whole;
    altered[at] = static_cast<char>(altered[at] ^ 0x40);
    expect_mended(altered);
    expect_mended(whole.substr(0, at));
  }
}

// Even if the header says that all is well, a reader never leaves the contents.
TEST_F(TokenizerCache, IsMadeAgainIfItsContentsEndTooEarly) {
  (void)load(ranks());
  const fs::path path = file();
  const std::vector<std::byte> whole = test::read_bytes(path);
  cache_key key{};
  std::copy_n(reinterpret_cast<const std::uint8_t*>(whole.data()) + 24, key.size(), key.begin());
  const auto contents = std::span(whole).subspan(64);
  ASSERT_TRUE(is_cached(ranks()));
  for (std::size_t size = 0; size < contents.size(); size += size < 512 ? 1 : 1009) {
    const std::vector<std::byte> cut(contents.begin(), contents.begin() + std::ptrdiff_t(size));
    write_cache_file(path, key, cut);
    ASSERT_FALSE(is_cached(ranks())) << size << " of " << contents.size() << " bytes";
  }
}

TEST_F(TokenizerCache, IsNotWrittenForFilesThatChangeWhileTheyAreRead) {
  const auto options = gpt2();
  auto plain = options;
  plain.cache.clear();
  const auto made = make_with_cache(options, [&] {
    auto tokenizer = make_tokenizer(plain);
    test::write_text(options.merge_file, "ab c\na b\n");
    return tokenizer;
  });
  EXPECT_EQ(made->vocab_size(), 261);
  EXPECT_TRUE(fs::is_empty(cache_));
}

TEST_F(TokenizerCache, ThatCannotBeUsedIsANote) {
  auto plain = gpt2();
  plain.cache.clear();
  const auto expected = make_tokenizer(plain);
  const auto expect_note = [&](const fs::path& folder, const std::string& reason) {
    auto options = gpt2();
    options.cache = folder;
    for (int i = 0; i < 2; ++i) {
      const auto made = make_tokenizer(options);
      test::expect_same(*made, *expected, texts);
      ASSERT_EQ(made->notes().size(), 1U) << folder;
      EXPECT_THAT(made->notes().front(),
                  HasSubstr("--tokenizer-cache " + folder.string() + " is not used: "));
      EXPECT_THAT(made->notes().front(), HasSubstr(reason));
      EXPECT_THAT(made->notes().front(), HasSubstr("; the tokenizer is loaded from its files"));
    }
  };
  expect_note(parent_ / "no/such/folder", "No such file or directory");
  test::write_text(parent_ / "file", "");
  expect_note(parent_ / "file", "Not a directory");
  fs::create_directory(parent_ / "open");
  ASSERT_EQ(::chmod((parent_ / "open").c_str(), 0777), 0);
  expect_note(parent_ / "open", "every user of this machine may replace files in it");
  EXPECT_TRUE(fs::is_empty(parent_ / "open"));
}

TEST_F(TokenizerCache, ThatCannotBeWrittenIsANote) {
  fs::create_directory(cache_);
  ASSERT_EQ(::chmod(cache_.c_str(), 0555), 0);
  const auto load_it = [&] {
    if (!test::become_ordinary_user()) return test::cannot_try;
    const auto notes = make_tokenizer(gpt2())->notes();
    return notes.size() == 1 && notes.front().find("Permission denied") != std::string::npos ? 0
                                                                                             : 1;
  };
  const int end = test::in_child(load_it);
  if (end == test::cannot_try) GTEST_SKIP() << "root may not drop its capabilities here";
  EXPECT_EQ(end, 0);
  EXPECT_TRUE(fs::is_empty(cache_));
}

TEST_F(TokenizerCache, IsOnlyForByteLevelBpe) {
  auto options = hugging_face(R"("pre_tokenizer":{"type":"WhitespaceSplit"},)");
  const auto made = load(options);
  ASSERT_EQ(made->notes().size(), 1U);
  EXPECT_THAT(made->notes().front(), HasSubstr("only byte-level BPE has tables to keep"));
  tokenizer_options bytes;
  bytes.cache = cache_;
  EXPECT_EQ(make_tokenizer(bytes)->notes().size(), 1U);
  EXPECT_TRUE(fs::is_empty(cache_));
}

TEST_F(TokenizerCache, DoesNotChangeTheErrorsOfFiles) {
  const auto message_of = [](const tokenizer_options& options) {
    try {
      (void)make_tokenizer(options);
    } catch (const error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  for (const char* content : {"", "{", "not JSON"}) {
    test::write_text(files_ / "vocab.json", content);
    auto plain = gpt2();
    plain.cache.clear();
    EXPECT_EQ(message_of(gpt2()), message_of(plain));
  }
  auto missing = gpt2();
  missing.merge_file = files_ / "missing";
  const std::string with_cache = message_of(missing);
  missing.cache.clear();
  EXPECT_EQ(with_cache, message_of(missing));
}

TEST_F(TokenizerCache, CanBeWrittenByManyProcessesAtOnce) {
  auto plain = ranks();
  plain.cache.clear();
  const std::string expected = make_tokenizer(plain)->fingerprint();
  for (int round = 0; round < 5; ++round) {
    fs::remove_all(cache_);
    std::vector<::pid_t> children;
    for (int i = 0; i < 8; ++i) {
      children.push_back(test::start_child([&] {
        for (int load = 0; load < 3; ++load) {
          const auto made = make_tokenizer(ranks());
          if (made->fingerprint() != expected || !made->notes().empty()) return 1;
        }
        return 0;
      }));
    }
    for (const ::pid_t child : children) EXPECT_EQ(test::end_of(child), 0);
    EXPECT_EQ(file().extension(), ".tables");  // and no partial file
    EXPECT_TRUE(is_cached(ranks(), source_digest));
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
