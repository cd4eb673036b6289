// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/formats/mmidx.hpp>
#include <millrace/formats/src.hpp>
#include <millrace/meta/dataset_meta.hpp>

#include "merge/content_key.hpp"
#include "record/block_encoder.hpp"
#include "run/pipeline.hpp"
#include "support/compressed.hpp"
#include "support/conversations.hpp"
#include "support/interrupted_runs.hpp"
#include "support/naive_fim.hpp"
#include "support/parquet_table.hpp"
#include "support/paths.hpp"
#include "support/preprocess_files.hpp"
#include "support/seed.hpp"
#include "support/tokenizers.hpp"

// Tests that a run with --max-tokens writes what a run without it would write if the inputs ended
// before the first document that does not fit.

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using generator = std::mt19937_64;

const std::vector<std::string> compared_suffixes = {".bin", ".idx",  ".sum",       ".src",
                                                    ".bad", ".mask", ".duplicates"};

std::string random_lines_of_texts(generator& random, bool bad) {
  static const std::vector<std::string> ends = {"\n", "\n", "\r\n", "\r"};
  std::string text = random() % 4 == 0 ? "\xEF\xBB\xBF" : "";
  const auto letters = [&] { return std::string(random() % 3 == 0 ? 0 : random() % 90, 'a'); };
  for (std::size_t n = random() % 5 == 0 ? 0 : random() % 150; n > 0; --n) {
    switch (random() % 9) {
      case 0:
        text += random() % 2 == 0 ? "" : " \t";
        break;
      case 1:
        text += bad ? "no JSON" : R"({"text": ["a", "", "b"], "title": []})";
        break;
      default:
        text += R"({"text": ")" + letters() + R"(", "title": ")" + letters() + "\"}";
    }
    if (n > 1 || random() % 2 == 0) text += ends[random() % ends.size()];
  }
  return text;
}

std::string random_conversations(generator& random) {
  std::string text;
  for (std::size_t n = random() % 60; n > 0; --n) text += test::random_conversation(random) + "\n";
  return text;
}

const plan_options two_columns = {.columns = {.paths = {{"text"}, {"title"}}}};

/// The inputs of a run, which can be written again with other texts.
struct input_texts {
  std::vector<std::string> paths;
  std::vector<std::string> texts;
  std::vector<int> kinds;                                 // 0: plain, 1: gzip, 2: zstd, 3: Parquet
  std::vector<std::vector<test::parquet_row>> rows = {};  // of an input of Parquet

  void write(generator& random) const {
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (kinds[i] == 3) {
        test::write_text(paths[i], test::encode_parquet({{"text", "title"}, rows[i]}, random));
        continue;
      }
      test::write_text(paths[i], kinds[i] == 0   ? texts[i]
                                 : kinds[i] == 1 ? test::gzip(texts[i])
                                                 : test::zstd(texts[i]));
    }
  }
};

/// A document of a run without a budget.
struct document {
  formats::source_place place;
  std::vector<std::int64_t> tokens;  // one per key
};

class TokenBudget : public testing::Test {
 protected:
  fs::path dataset(const std::string& name, std::size_t key) const {
    return folder_ / (name + "_" + options_.keys[key].name + "_document");
  }
  formats::dataset_meta meta(const std::string& name, std::size_t key) const {
    return formats::parse_meta(test::read_text(dataset(name, key).string() + ".meta"));
  }

  void make_run(bool conversations) {
    options_ = {};
    options_.keys = plain_keys(conversations ? std::vector<std::string>{"messages"}
                                             : std::vector<std::string>{"text", "title"});
    const bool bad = random_() % 2 == 0;
    options_.on_bad_record =
        bad || conversations ? bad_record_policy::quarantine : bad_record_policy::fail;
    if (conversations) {
      options_.conversations =
          std::make_shared<const conversation_options>(test::plain_conversations());
    }
    options_.append_eod = random_() % 2 == 0;
    options_.limits.spool_folder = folder_.path();
    if (random_() % 3 == 0) options_.limits.giant_bytes = 20 + random_() % 100;
    if (random_() % 3 == 0) {  // only the tokens of the documents that stay count
      const bool by_ids = conversations || random_() % 2 == 0;
      if (has_xxhash() || !by_ids) {
        options_.drop_duplicates = by_ids ? duplicates_by::ids : duplicates_by::text;
        options_.keys.resize(1);
      }
    }
    if (random_() % 3 == 0) options_.sample = {.rate = 0.7, .seed = random_()};
    if (!conversations && random_() % 3 == 0) {
      options_.fim = test::random_fim(random_);
      options_.on_bad_record = bad_record_policy::quarantine;  // records may be too large
    }
    inputs_ = {};
    for (std::size_t n = 1 + random_() % 5; n > 0; --n) {
      inputs_.paths.push_back((folder_ / ("in" + std::to_string(n))).string());
      inputs_.texts.push_back(conversations ? random_conversations(random_)
                                            : random_lines_of_texts(random_, bad));
      inputs_.kinds.push_back(static_cast<int>(random_() % (conversations ? 3 : 4)));
      inputs_.rows.emplace_back();
      if (inputs_.kinds.back() != 3) continue;
      inputs_.rows.back() = test::random_table(random_, {"text", "title"}, 150, bad).rows;
      inputs_.texts.back() = std::string(inputs_.rows.back().size(), '-');
    }
    inputs_.write(random_);
    options_.inputs = plan_inputs(inputs_.paths, two_columns);
  }

  std::vector<document> documents_of(const std::string& name) const {
    std::vector<document> documents;
    for (std::size_t key = 0; key < options_.keys.size(); ++key) {
      const std::string idx = test::read_text(dataset(name, key).string() + ".idx");
      const std::string src = test::read_text(dataset(name, key).string() + ".src");
      const auto view = formats::parse_mmidx(std::as_bytes(std::span(idx)));
      const auto places = formats::parse_src(std::as_bytes(std::span(src)));
      documents.resize(view.document_index.size() - 1);
      for (std::size_t d = 0; d < documents.size(); ++d) {
        documents[d].place = places.at(d);
        std::int64_t tokens = 0;
        for (auto s = view.document_index[d]; s < view.document_index[d + 1]; ++s) {
          tokens += view.lengths[static_cast<std::size_t>(s)];
        }
        documents[d].tokens.push_back(tokens);
      }
    }
    return documents;
  }

  // The first document with which a dataset has more than `most` tokens.
  std::optional<document> first_beyond(const std::vector<document>& documents,
                                       std::int64_t most) const {
    std::vector<std::int64_t> sums(options_.keys.size());
    for (const document& each : documents) {
      for (std::size_t key = 0; key < sums.size(); ++key) sums[key] += each.tokens[key];
      if (std::ranges::max(sums) > most) return each;
    }
    return std::nullopt;
  }

  void expect_equal(const std::string& found, const std::string& wanted,
                    const std::optional<document>& stop) const {
    for (std::size_t key = 0; key < options_.keys.size(); ++key) {
      for (const std::string& suffix : compared_suffixes) {
        const auto a = dataset(found, key).string() + suffix;
        const auto b = dataset(wanted, key).string() + suffix;
        ASSERT_EQ(fs::exists(a), fs::exists(b)) << key << suffix;
        if (!fs::exists(a)) continue;
        EXPECT_TRUE(test::read_text(a) == test::read_text(b)) << key << suffix;
      }
      formats::dataset_meta cut = meta(found, key);
      const auto at = std::ranges::find(cut.options, "stopped_before",
                                        &std::pair<std::string, std::string>::first);
      ASSERT_EQ(at != cut.options.end(), stop.has_value());
      if (stop) {
        EXPECT_EQ(at->second, (inputs_.kinds[stop->place.input] == 3 ? "row " : "byte ") +
                                  std::to_string(stop->place.begin) + " of " +
                                  inputs_.paths[stop->place.input]);
      }
      std::erase_if(cut.options, [](const auto& option) {
        return option.first == "stopped_before" || option.first == "--max-tokens";
      });
      EXPECT_EQ(to_json(cut), to_json(meta(wanted, key)));
    }
  }

  // Ends the inputs before a document.
  void cut_inputs(const document& stop) {
    inputs_.texts.resize(stop.place.input + 1);
    inputs_.texts.back().resize(stop.place.begin);
    if (inputs_.kinds[stop.place.input] == 3) {
      inputs_.rows[stop.place.input].resize(stop.place.begin);
    }
    if (inputs_.texts.back() == "\xEF\xBB\xBF") inputs_.texts.back().clear();
    // Empty inputs are listed only if a later one is not empty.
    while (!inputs_.texts.empty() && inputs_.texts.back().empty()) inputs_.texts.pop_back();
    inputs_.paths.resize(inputs_.texts.size());
  }

  void expect_cut(int partitions) {
    const auto tokenizer = test::byte_tokenizer();
    options_.output_prefix = folder_ / "all";
    try {
      test::run_in_pieces(*tokenizer, options_, random_, 0);
    } catch (const error& e) {
      ASSERT_THAT(e.what(), testing::StartsWith("every record is bad"));
      return clear();
    }
    const auto documents = documents_of("all");
    std::int64_t all = 0;
    for (const document& each : documents) all += std::ranges::max(each.tokens);
    const std::int64_t most =
        1 + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(all + all / 8 + 2));
    const auto stop = first_beyond(documents, most);
    cuts_ += stop ? 1 : 0;
    SCOPED_TRACE(testing::Message() << most << " of " << all << " tokens");

    run_options budget = options_;
    budget.output_prefix = folder_ / "cut";
    budget.most_tokens = most;
    budget.partitions = partitions;
    stops_ += test::run_in_pieces(*tokenizer, budget, random_, random_() % 2 == 0 ? 3 : 0);
    budget.resume = true;  // there is nothing to do
    budget.trust_dates = false;
    preprocess::progress quiet(preprocess::progress::style::silent, 1, 0);
    (void)run(*tokenizer, budget, quiet);

    run_options by_hand = options_;
    const auto names = inputs_.paths;
    const bool takes_any = !stop || stop->place != documents.front().place;
    if (stop) cut_inputs(*stop);
    inputs_.write(random_);
    if (takes_any) {
      by_hand.inputs = plan_inputs(inputs_.paths, two_columns);
      by_hand.output_prefix = folder_ / "hand";
      by_hand.partitions = partitions;
      test::run_in_pieces(*tokenizer, by_hand, random_, 0);
      inputs_.paths = names;
      expect_equal("cut", "hand", stop);
    } else {
      EXPECT_EQ(fs::file_size(dataset("cut", 0).string() + ".bin"), 0U);
    }
    clear();
  }

  void clear() const {
    for (const auto& entry : fs::directory_iterator(folder_.path())) fs::remove(entry.path());
  }

  generator random_{test::seed(61)};
  const test::temp_folder folder_{test::quick_folder()};
  run_options options_;
  input_texts inputs_;
  int cuts_ = 0;
  int stops_ = 0;
};

TEST_F(TokenBudget, EndsBeforeTheFirstDocumentThatDoesNotFit) {
  for (int round = 0; round < 120; ++round) {
    SCOPED_TRACE(round);
    make_run(round % 4 == 3);
    expect_cut(round % 5 == 4 && !options_.drop_duplicates ? 3 : 1);
    if (HasFailure()) return;
  }
  std::cout << cuts_ << " of 120 ended early, " << stops_ << " stops\n";
  EXPECT_GT(cuts_, 40);
  EXPECT_GT(stops_, 20);
}

// A block that is cut is the block of the text before the cut.
TEST_F(TokenBudget, CutsABlockBeforeEachDocument) {
  const auto tokenizer = test::byte_tokenizer();
  for (int round = 0; round < 60; ++round) {
    make_run(round % 3 == 2);
    options_.on_bad_record = bad_record_policy::quarantine;
    options_.most_tokens = 1;
    auto encoding = encoder_options_of(*tokenizer, options_);
    block_encoder encoder(*tokenizer, encoding);
    const std::string& text = inputs_.texts.front();
    const auto encode = [&](std::size_t bytes) {
      byte_block block;
      block.begin = 700;
      block.mark_bytes = bytes != 0 && text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
      block.text_bytes = bytes;
      block.buffer.reserve(bytes + text_padding_bytes, 0);
      std::memcpy(block.buffer.data(), text.data(), bytes);
      encoded_block out;
      encoder.encode(block, out);
      return out;
    };
    const std::size_t documents = encode(text.size()).places.size();
    for (std::size_t document = 0; document < documents; ++document) {
      SCOPED_TRACE(document);
      encoded_block cut = encode(text.size());
      cut_before(cut, document, 2);
      const encoded_block wanted = encode(cut.end - 700);
      EXPECT_EQ(cut.end, wanted.end);
      EXPECT_EQ(cut.crc32c, wanted.crc32c);
      EXPECT_EQ(std::memcmp(&cut.counts, &wanted.counts, sizeof(record_counts)), 0);
      EXPECT_EQ(cut.places.size(), wanted.places.size());
      EXPECT_EQ(cut.marks.size(), wanted.marks.size());
      ASSERT_EQ(cut.faults.size(), wanted.faults.size());
      for (std::size_t i = 0; i < cut.faults.size(); ++i) {
        EXPECT_EQ(cut.faults[i].place.begin, wanted.faults[i].place.begin);
        EXPECT_EQ(cut.faults[i].raw, wanted.faults[i].raw);
      }
      for (std::size_t key = 0; key < cut.columns.size(); ++key) {
        const encoded_column& a = cut.columns[key];
        const encoded_column& b = wanted.columns[key];
        ASSERT_EQ(a.ids_bytes, b.ids_bytes);
        EXPECT_TRUE(a.ids_bytes == 0 || std::memcmp(a.ids.data(), b.ids.data(), a.ids_bytes) == 0);
        EXPECT_EQ(a.lengths, b.lengths);
        EXPECT_EQ(a.document_ends, b.document_ends);
        ASSERT_EQ(a.mask.size(), b.mask.size());
        for (std::uint64_t bit = 0; bit < a.mask.size(); ++bit) {
          EXPECT_EQ(a.mask.bits()[bit], b.mask.bits()[bit]);
        }
      }
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace millrace::preprocess
