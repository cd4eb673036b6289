// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/formats/detail/mask.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/formats/src.hpp>
#include <millrace/meta/dataset_meta.hpp>

#include "merge/content_key.hpp"
#include "merge/merge.hpp"
#include "merge/shuffle_documents.hpp"
#include "record/record_parser.hpp"
#include "run/pipeline.hpp"
#include "support/compressed.hpp"
#include "support/conversations.hpp"
#include "support/interrupted_runs.hpp"
#include "support/naive_fim.hpp"
#include "support/paths.hpp"
#include "support/preprocess_files.hpp"
#include "support/seed.hpp"
#include "support/tokenizers.hpp"

// Tests that --drop-duplicates keeps what a map of all documents keeps.

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using generator = std::mt19937_64;

/// Allows this process few open files, for the lifetime of the object.
class few_open_files {
 public:
  few_open_files() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &usual_), 0);
    set({std::min<::rlim_t>(256, usual_.rlim_cur), usual_.rlim_max});
  }
  ~few_open_files() { set(usual_); }
  few_open_files(const few_open_files&) = delete;
  few_open_files& operator=(const few_open_files&) = delete;

 private:
  static void set(const struct ::rlimit& limit) {
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  struct ::rlimit usual_ {};
};

constexpr const char* needs_xxhash = "this build has no xxHash";

/// A document of a dataset.
struct whole_document {
  std::string ids;  // as bytes
  std::vector<std::int32_t> lengths;
  std::vector<bool> mask;
  formats::source_place place;

  bool operator==(const whole_document&) const = default;
};

/// A dataset, read at once.
struct whole_dataset {
  std::vector<whole_document> documents;
  formats::dataset_meta meta;
};

whole_dataset read(const std::string& prefix) {
  whole_dataset all;
  all.meta = formats::parse_meta(test::read_text(prefix + ".meta"));
  const std::string bin = test::read_text(prefix + ".bin");
  const std::string idx = test::read_text(prefix + ".idx");
  const auto view = formats::parse_mmidx(std::as_bytes(std::span(idx)));
  const std::size_t item = formats::size_bytes(view.type);
  std::string src;
  std::optional<formats::src_view> places;
  if (fs::exists(prefix + ".src")) {
    src = test::read_text(prefix + ".src");
    places = formats::parse_src(std::as_bytes(std::span(src)));
  }
  std::string mask;
  std::optional<formats::mask_view> bits;
  if (fs::exists(prefix + ".mask")) {
    mask = test::read_text(prefix + ".mask");
    bits = formats::parse_mask(std::as_bytes(std::span(mask)));
  }
  std::size_t token = 0;
  for (std::size_t d = 0; d + 1 < view.document_index.size(); ++d) {
    whole_document& each = all.documents.emplace_back();
    const std::size_t begin = token;
    for (auto s = view.document_index[d]; s < view.document_index[d + 1]; ++s) {
      each.lengths.push_back(view.lengths[static_cast<std::size_t>(s)]);
      token += static_cast<std::size_t>(each.lengths.back());
    }
    each.ids = bin.substr(begin * item, (token - begin) * item);
    for (std::size_t i = begin; bits && i < token; ++i) each.mask.push_back(bits->bits[i]);
    if (places) each.place = places->at(d);
  }
  return all;
}

/// What a map says of documents: which are kept, and what P.duplicates says of the others.
struct kept_documents {
  std::vector<whole_document> documents;
  std::string duplicates;
};

template <class Content>
kept_documents keep_firsts(const whole_dataset& all, Content&& content_of) {
  kept_documents kept;
  std::map<std::string, std::size_t> firsts;
  for (const whole_document& each : all.documents) {
    const auto [first, is_new] = firsts.emplace(content_of(each), kept.documents.size());
    if (is_new) {
      kept.documents.push_back(each);
      continue;
    }
    kept.duplicates += fmt::format(
        "{{\"file\": \"{}\", \"line\": {}, \"byte\": {}, \"bytes\": {}, \"document\": {}}}\n",
        all.meta.inputs[each.place.input].path, each.place.line, each.place.begin,
        each.place.end - each.place.begin, first->second);
  }
  return kept;
}

void expect_kept(const std::string& prefix, const whole_dataset& all, const kept_documents& kept,
                 const std::string& by) {
  const whole_dataset found = read(prefix);
  EXPECT_TRUE(found.documents == kept.documents);
  const bool has_places = all.meta.src_version.has_value();
  EXPECT_EQ(fs::exists(prefix + ".duplicates"), has_places && !kept.duplicates.empty());
  if (fs::exists(prefix + ".duplicates")) {
    EXPECT_EQ(test::read_text(prefix + ".duplicates"), kept.duplicates);
  }
  formats::dataset_meta wanted = all.meta;
  const auto count = [&](auto&& of) {
    std::int64_t sum = 0;
    for (const whole_document& each : kept.documents) sum += of(each);
    return sum;
  };
  const std::int64_t item = static_cast<std::int64_t>(formats::size_bytes(wanted.type));
  wanted.counts.documents = count([](const whole_document&) { return 1; });
  wanted.counts.duplicates = std::ssize(all.documents) - wanted.counts.documents;
  wanted.counts.empty_documents =
      count([](const whole_document& d) { return d.lengths.empty() ? 1 : 0; });
  wanted.counts.sequences = count([](const whole_document& d) { return std::ssize(d.lengths); });
  wanted.counts.tokens = count([&](const whole_document& d) { return std::ssize(d.ids) / item; });
  wanted.bin_bytes = static_cast<std::uint64_t>(wanted.counts.tokens * item);
  if (wanted.mask) {
    wanted.mask->trained =
        count([](const whole_document& d) { return std::ranges::count(d.mask, true); });
    wanted.mask->root = found.meta.mask->root;
  }
  wanted.sum_root = found.meta.sum_root;
  wanted.options.emplace_back("--drop-duplicates", by);
  EXPECT_EQ(to_json(found.meta), to_json(wanted));
}

std::string random_texts(generator& random) {
  const auto text = [&] {
    static const std::vector<std::string> pool = {
        "\"\"",     R"("a")",        R"("\u0061")", R"("Word. Two.")",
        R"("b\n")", R"(["a", "b"])", R"(["ab"])"};
    if (random() % 2 == 0) return pool[random() % pool.size()];
    std::string letters = "\"";
    letters.append(random() % 200, static_cast<char>('a' + random() % 2));
    return letters + '"';
  };
  std::string lines = random() % 4 == 0 ? "\xEF\xBB\xBF" : "";
  for (std::size_t n = random() % 150; n > 0; --n) {
    lines += random() % 9 == 0 ? "no JSON" : "{\"text\": " + text() + "}";
    lines += random() % 9 == 0 ? "\n\n" : "\n";
  }
  return lines;
}

class DropDuplicates : public testing::Test {
 protected:
  std::string prefix(const std::string& name) const {
    return (folder_ / (name + "_" + options_.keys.front().name + "_document")).string();
  }

  void make_run(bool conversations) {
    options_ = {};
    options_.on_bad_record = bad_record_policy::quarantine;
    options_.append_eod = random_() % 2 == 0;
    options_.limits.spool_folder = folder_.path();
    options_.checksums = random_() % 5 != 0;
    options_.provenance = random_() % 5 != 0;
    options_.duplicates_bytes = random_() % 10'000;
    if (random_() % 3 == 0) options_.sample = {.rate = 0.7, .seed = random_()};
    if (random_() % 3 == 0) options_.limits.giant_bytes = 20 + random_() % 200;
    if (conversations) {
      options_.keys = plain_keys({"messages"});
      options_.conversations =
          std::make_shared<const conversation_options>(test::plain_conversations());
    } else if (random_() % 3 == 0) {
      options_.fim = test::random_fim(random_);
    }
    std::vector<std::string> paths;
    texts_.clear();
    for (std::size_t n = 1 + random_() % 4; n > 0; --n) {
      paths.push_back((folder_ / ("in" + std::to_string(n))).string());
      texts_.push_back(conversations ? "" : random_texts(random_));
      for (std::size_t i = random_() % 40; conversations && i > 0; --i) {
        // There are few different ones, so many are alike.
        generator few(random_() % 10);
        texts_.back() += test::random_conversation(few) + "\n";
      }
      test::write_text(paths.back(),
                       random_() % 2 == 0 ? texts_.back() : test::zstd(texts_.back()));
    }
    if (random_() % 3 == 0) {
      paths.push_back(paths.front());
      texts_.push_back(texts_.front());
    }
    options_.inputs = plan_inputs(paths);
  }

  std::string texts_of(const whole_document& each) const {
    const std::string_view record =
        std::string_view(texts_[each.place.input])
            .substr(each.place.begin, each.place.end - each.place.begin);
    const std::string padded = std::string(record) + std::string(record_parser::padding_bytes, '?');
    record_parser parser(options_.keys);
    EXPECT_FALSE(parser.parse(std::string_view(padded).substr(0, record.size()))) << record;
    std::string all;
    for (const std::string_view text : parser.texts(0))
      all += fmt::format("{}:{};", text.size(), text);
    return all;
  }

  // Returns nothing if there is no good record.
  std::optional<whole_dataset> run_all() {
    options_.output_prefix = folder_ / "all";
    try {
      test::run_in_pieces(*tokenizer_, options_, random_, 0);
    } catch (const error& e) {
      EXPECT_THAT(e.what(), testing::StartsWith("every record is bad"));
      return std::nullopt;
    }
    return read(prefix("all"));
  }

  void expect_nothing_left() const {
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename().string();
      EXPECT_FALSE(name.starts_with(".") || name.ends_with(".partial") ||
                   name.ends_with(".journal") || name.ends_with(".digests"))
          << name;
    }
  }

  void clear() const {
    for (const auto& entry : fs::directory_iterator(folder_.path())) fs::remove_all(entry.path());
  }

  generator random_{test::seed(62)};
  const test::temp_folder folder_{test::quick_folder()};
  const std::unique_ptr<tokenizer::tokenizer> tokenizer_ = test::byte_tokenizer();
  run_options options_;
  std::vector<std::string> texts_;  // of each input
};

TEST_F(DropDuplicates, KeepsTheFirstOfDocumentsWithEqualIdsOrTexts) {
  int stops = 0;
  std::int64_t dropped = 0;
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(round);
    make_run(round % 4 == 3);
    const bool by_text = round % 2 == 0;
    if (!by_text && !has_xxhash()) continue;
    if (by_text) options_.provenance = true;  // to find the texts
    if (const auto all = run_all()) {
      const kept_documents kept = keep_firsts(
          *all, [&](const whole_document& each) { return by_text ? texts_of(each) : each.ids; });
      run_options without = options_;
      without.drop_duplicates = by_text ? duplicates_by::text : duplicates_by::ids;
      without.output_prefix = folder_ / "out";
      stops += test::run_in_pieces(*tokenizer_, without, random_, random_() % 2 == 0 ? 4 : 0);
      expect_kept(prefix("out"), *all, kept, by_text ? "text" : "ids");
      EXPECT_EQ(fs::exists(prefix("all") + ".bad"), fs::exists(prefix("out") + ".bad"));
      if (fs::exists(prefix("out") + ".bad")) {
        EXPECT_EQ(test::read_text(prefix("all") + ".bad"), test::read_text(prefix("out") + ".bad"));
      }
      expect_nothing_left();
      without.resume = true;  // there is nothing to do
      without.trust_dates = false;
      preprocess::progress quiet(preprocess::progress::style::silent, 1, 0);
      const run_summary again = run(*tokenizer_, without, quiet);
      dropped += again.duplicates;
      EXPECT_EQ(again.duplicates, std::ssize(all->documents) - std::ssize(kept.documents));
    }
    clear();
    if (HasFailure()) return;
  }
  std::cout << dropped << " dropped, " << stops << " stops\n";
  EXPECT_GT(dropped, 1000);
  EXPECT_GT(stops, 15);
}

// Any datasets can be merged without documents that are there twice, and shuffled as well.
TEST_F(DropDuplicates, MergesWithoutDocumentsThatAreThereTwice) {
  if (!has_xxhash()) GTEST_SKIP() << needs_xxhash;
  std::int64_t dropped = 0;
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    make_run(round % 4 == 3);
    fs::create_directories(folder_ / "parts");
    const auto inputs = options_.inputs;
    int parts = 0;
    for (const input_file& input : inputs) {
      options_.inputs = {input};
      if (!run_all()) continue;
      ++parts;
      for (const auto& entry : fs::directory_iterator(folder_.path())) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with("all_")) continue;
        fs::rename(entry.path(), folder_.path() / "parts" / (std::to_string(parts) + name));
      }
    }
    if (parts != 0) {
      merge_options options{.input = folder_ / "parts", .output_prefix = folder_ / "all"};
      (void)merge(options);
      options.output_prefix = folder_ / "out";
      options.drop_duplicates = true;
      options.memory_bytes = random_() % 10'000;
      const merge_summary summary = merge(options);
      const whole_dataset all = read((folder_ / "all").string());
      const kept_documents kept =
          keep_firsts(all, [](const whole_document& each) { return each.ids; });
      expect_kept((folder_ / "out").string(), all, kept, "ids");
      EXPECT_EQ(summary.duplicates, std::ssize(all.documents) - std::ssize(kept.documents));
      EXPECT_EQ(summary.documents, std::ssize(kept.documents));
      EXPECT_EQ(fs::exists(folder_ / "all.bad"), fs::exists(folder_ / "out.bad"));
      dropped += *summary.duplicates;

      fs::create_directories(folder_ / "kept");
      for (const std::string suffix : {".bin", ".idx", ".meta", ".sum", ".src", ".mask"}) {
        const auto file = folder_.path() / ("out" + suffix);
        if (fs::exists(file)) fs::copy(file, folder_.path() / "kept" / ("out" + suffix));
      }
      options.output_prefix = folder_ / "shuffled";
      (void)merge_shuffled(options, 7);
      (void)merge_shuffled({.input = folder_ / "kept", .output_prefix = folder_ / "by_hand"}, 7);
      for (const std::string suffix : {".bin", ".idx", ".meta", ".sum", ".src", ".mask"}) {
        const auto file = folder_.path() / ("by_hand" + suffix);
        if (!fs::exists(file)) continue;
        EXPECT_TRUE(test::read_text(file) ==
                    test::read_text(folder_.path() / ("shuffled" + suffix)))
            << suffix;
      }
      expect_nothing_left();
    }
    clear();
    if (HasFailure()) return;
  }
  std::cout << dropped << " dropped\n";
  EXPECT_GT(dropped, 1000);
}

// Different documents never have equal keys, unless a key has so few bits.
TEST_F(DropDuplicates, ComparesDocumentsWithEqualKeys) {
  if (!has_xxhash()) GTEST_SKIP() << needs_xxhash;
  std::string lines;
  const auto add = [&](const std::string& text) { lines += "{\"text\": \"" + text + "\"}\n"; };
  for (int i = 0; i < 200; ++i) add(std::to_string(random_() % 150));
  // Documents that are read in several pieces, and ones whose size is not in their key
  for (const std::size_t size : {std::size_t{100'000}, std::size_t{8'500'000}}) {
    const std::string letters(size, 'x');
    for (const char* text : {"", "a", "b", "a"}) {
      add(letters + text);
      add(text + letters);
    }
    add(letters.substr(1));  // begins as the first one
  }
  test::write_text(folder_ / "in", lines);
  fs::create_directories(folder_ / "parts");
  options_.output_prefix = folder_ / "parts/all";
  (void)test::preprocess_files(*tokenizer_, {(folder_ / "in").string()}, options_);
  const whole_dataset all = read(prefix("parts/all"));
  const kept_documents kept = keep_firsts(all, [](const whole_document& each) { return each.ids; });
  for (const char* bits : {"0", "1", "2"}) {
    SCOPED_TRACE(bits);
    ASSERT_EQ(::setenv("MILLRACE_TEST_KEY_BITS", bits, 1), 0);
    const merge_summary summary = merge({.input = folder_ / "parts",
                                         .output_prefix = folder_ / "out",
                                         .overwrite = true,
                                         .drop_duplicates = true});
    ASSERT_EQ(::unsetenv("MILLRACE_TEST_KEY_BITS"), 0);
    expect_kept((folder_ / "out").string(), all, kept, "ids");
    EXPECT_GT(*summary.duplicates, 50);
  }
}

// There is no byte of such documents to point to.
TEST_F(DropDuplicates, ComparesEmptyDocumentsOfAnEmptyDataset) {
  if (!has_xxhash()) GTEST_SKIP() << needs_xxhash;
  fs::create_directories(folder_ / "parts");
  test::write_text(folder_ / "parts/a.bin", "");
  const auto header = formats::encode_mmidx_header(formats::dtype::uint16, 3, 3);
  std::string idx(reinterpret_cast<const char*>(header.data()), header.size());
  idx.append(3 * sizeof(std::int32_t) + 3 * sizeof(std::int64_t), '\0');  // lengths, pointers
  for (std::int64_t sequence = 0; sequence <= 3; ++sequence) {
    idx.append(reinterpret_cast<const char*>(&sequence), sizeof sequence);
  }
  test::write_text(folder_ / "parts/a.idx", idx);
  const merge_summary summary = merge(
      {.input = folder_ / "parts", .output_prefix = folder_ / "out", .drop_duplicates = true});
  EXPECT_EQ(summary.duplicates, 2);
}

// The tokens are read while the index is checked, so a wrong length must not lead past their end.
TEST_F(DropDuplicates, RefusesDamagedLengthsAndPointers) {
  if (!has_xxhash()) GTEST_SKIP() << needs_xxhash;
  fs::create_directories(folder_ / "parts");
  test::write_text(folder_ / "in", "{\"text\": \"a\"}\n{\"text\": \"\"}\n{\"text\": \"bc\"}\n");
  for (const std::string part : {"1", "2"}) {
    options_.output_prefix = folder_.path() / "parts" / part;
    options_.checksums = options_.provenance = false;
    (void)test::preprocess_files(*tokenizer_, {(folder_ / "in").string()}, options_);
  }
  const fs::path path = folder_.path() / "parts" / "1_text_document.idx";
  const std::string whole = test::read_text(path);
  const merge_options options{.input = folder_ / "parts",
                              .output_prefix = folder_ / "out",
                              .overwrite = true,
                              .drop_duplicates = true};
  EXPECT_EQ(merge(options).documents, 3);
  constexpr std::size_t sequences = 2;
  for (std::size_t bit = 8 * formats::mmidx_header_bytes;
       bit < 8 * (formats::mmidx_header_bytes + 12 * sequences); ++bit) {
    SCOPED_TRACE(bit);
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    test::write_text(path, damaged);
    EXPECT_THROW(merge(options), format_error);
  }
}

// So few parts are open at once that those of two compared documents are often opened again.
TEST_F(DropDuplicates, MergesMorePartsThanItOpensAtOnce) {
  if (!has_xxhash()) GTEST_SKIP() << needs_xxhash;
  const few_open_files few;
  fs::create_directories(folder_ / "parts");
  for (int part = 0; part < 300; ++part) {
    std::string lines;
    for (int i = 0; i < 20; ++i) {
      const std::string letters(random_() % 2 == 0 ? 1 : 2000, 'x');
      lines += fmt::format("{{\"text\": \"{}{}\"}}\n", random_() % 3000, letters);
    }
    test::write_text(folder_ / "in", lines);
    options_.output_prefix = folder_.path() / "parts" / fmt::format("{:03}", part);
    (void)test::preprocess_files(*tokenizer_, {(folder_ / "in").string()}, options_);
  }
  merge_options options{.input = folder_ / "parts", .output_prefix = folder_ / "all"};
  (void)merge(options);
  options.output_prefix = folder_ / "out";
  options.drop_duplicates = true;
  const merge_summary summary = merge(options);
  const whole_dataset all = read((folder_ / "all").string());
  const kept_documents kept = keep_firsts(all, [](const whole_document& each) { return each.ids; });
  expect_kept((folder_ / "out").string(), all, kept, "ids");
  EXPECT_GT(*summary.duplicates, 1000);
}

}  // namespace
}  // namespace millrace::preprocess
