// SPDX-License-Identifier: Apache-2.0
//
// Compares samples with Megatron's samples. Some tests use samples of whole Megatron datasets.
// Others use single texts with every combination of options.
#include <simdjson.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/detail/sample/cu_seqlens.hpp>
#include <millrace/dataset/detail/sample/fields.hpp>
#include <millrace/dataset/detail/sample/gather.hpp>

#include "support/attention_mask.hpp"
#include "support/paths.hpp"
#include "unit/dataset/sample/naive_fields.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

namespace dom = simdjson::dom;
using test::ids;

ids ids_of(dom::element array) {
  ids values;
  for (const auto value : array.get_array()) {
    values.push_back(static_cast<std::int64_t>(value.get_double().value()));
  }
  return values;
}

void expect_fields(const test::naive_sample& found, dom::element expected) {
  EXPECT_EQ(found.tokens, ids_of(expected["tokens"]));
  EXPECT_EQ(found.labels, ids_of(expected["labels"]));
  EXPECT_EQ(found.position_ids, ids_of(expected["position_ids"]));
  EXPECT_EQ(ids(found.loss_mask.begin(), found.loss_mask.end()), ids_of(expected["loss_mask"]));
}

void expect_mask(const test::attention_mask& mask, dom::element rows) {
  std::int64_t i = 0;
  for (const auto row : rows.get_array()) {
    const std::string_view text = row.get_string();
    for (std::size_t j = 0; j < text.size(); ++j) {
      EXPECT_EQ(mask(i, static_cast<std::int64_t>(j)), text[j] == '1') << i << ", " << j;
    }
    ++i;
  }
}

TEST(GoldenSamples, AreMegatronsUnderEveryOption) {
  std::ifstream lines(test::golden("megatron/sample_fields.jsonl"));
  dom::parser parser;
  int cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    SCOPED_TRACE(line);
    const dom::element c = parser.parse(line);
    const dom::element o = c["options"];
    const field_options options{.extra_token = o["extra_token"].get_bool(),
                                .reset_position_ids = o["reset_position_ids"].get_bool(),
                                .reset_attention_mask = o["reset_attention_mask"].get_bool(),
                                .eod_mask_loss = o["eod_mask_loss"].get_bool(),
                                .eod = c["eod"].get_int64(),
                                .pad = c["pad"].get_int64()};
    ids text = ids_of(c["text"]);
    const auto real = static_cast<std::int64_t>(text.size());
    const std::int64_t seq_len = c["seq_len"].get_int64();
    // The ids after the text do not matter, because `real` marks them as padding.
    text.resize(static_cast<std::size_t>(seq_len + (options.extra_token ? 1 : 0)), 9);
    expect_fields(test::filled_fields(text, real, options), c);
    std::fill(text.begin() + static_cast<std::ptrdiff_t>(real), text.end(), options.pad);
    text.resize(static_cast<std::size_t>(seq_len));
    expect_mask(options.reset_attention_mask
                    ? test::attention_mask::by_eod<std::int64_t>(text, options.eod)
                    : test::attention_mask(seq_len),
                c["masked"]);
  }
  EXPECT_EQ(cases, 128);
}

/// Writes the corpus of the golden datasets. It has 24 documents of one sequence, each with an eod
/// at its end.
constexpr std::int64_t corpus_eod = 999;
void write_corpus(const std::filesystem::path& prefix) {
  test::documents_of<std::uint16_t> documents;
  for (int i = 0; i < 24; ++i) {
    std::vector<std::uint16_t> tokens;
    const int length = 2 + (7 * i) % 23;
    for (int k = 0; k + 1 < length; ++k) {
      tokens.push_back(static_cast<std::uint16_t>((37 * i + k) % 999));
    }
    tokens.push_back(corpus_eod);
    documents.push_back({tokens});
  }
  test::write_dataset<std::uint16_t>(prefix, documents);
}

/// Computes the pieces of a sample from Megatron's document index and sample index.
std::vector<piece> pieces_of(const indexed_dataset& data, dom::element split, std::int64_t sample,
                             std::int64_t extra) {
  const ids documents = ids_of(split["document_index"]);
  const auto row = [&](std::int64_t i) {
    return ids_of(split["sample_index"].at(static_cast<std::size_t>(i)));
  };
  const ids begin = row(sample);
  const ids end = row(sample + 1);
  std::vector<piece> pieces;
  for (std::int64_t k = begin[0]; k <= end[0]; ++k) {
    const std::int64_t sequence = documents[static_cast<std::size_t>(k)];
    const std::int64_t first = k == begin[0] ? begin[1] : 0;
    const std::int64_t last = k == end[0] ? end[1] + extra : data.sequence_length(sequence);
    pieces.push_back({sequence, first, last - first});
  }
  return pieces;
}

TEST(GoldenSamples, AreThoseOfMegatronsDatasets) {
  const auto shared = test::shared_folder();
  if (shared.empty()) GTEST_SKIP() << test::no_shared_folder;
  const test::temp_folder folder;
  write_corpus(folder / "corpus");
  const indexed_dataset data(folder / "corpus");
  dom::parser parser;
  const dom::element golden = parser.load((shared / "golden/megatron_golden.json").string());
  int samples = 0;
  int masks = 0;
  for (const dom::element config : golden["gpt"].get_array()) {
    const std::int64_t seq_len = config["S"].get_int64();
    bool extra = true;
    if (const auto given = config["extra"]; !given.error()) extra = given.get_bool();
    const field_options options{.extra_token = extra,
                                .reset_position_ids = true,
                                .reset_attention_mask = true,
                                .eod_mask_loss = true,
                                .eod = corpus_eod};
    for (const char* name : {"train", "valid", "test"}) {
      dom::element split;
      if (config["splits"][name].get(split) != simdjson::SUCCESS) continue;
      if (split.is_null() || split["len"].get_int64().value() == 0) continue;
      SCOPED_TRACE(std::string(std::string_view(config["name"])) + ' ' + name);
      const ids shuffled = ids_of(split["shuffle_index"]);
      for (const char* which : {"sample0", "last"}) {
        const std::int64_t sample = which[0] == 's' ? shuffled.front() : shuffled.back();
        const auto pieces = pieces_of(data, split, sample, extra ? 1 : 0);
        std::vector<std::uint16_t> text(static_cast<std::size_t>(seq_len + (extra ? 1 : 0)));
        const std::int64_t real = gather<std::uint16_t>(data, pieces, text);
        const auto found = test::filled_fields(text, real, options);
        expect_fields(found, split[which]);
        ++samples;
        if (which[0] != 's') continue;
        const dom::element rows = split["sample0_attention_mask_rows"];
        expect_mask(test::attention_mask::by_eod<std::int64_t>(found.tokens, corpus_eod), rows);
        // In this corpus, each document ends with an eod and has no other eod. So the document
        // boundaries of the index give the same mask.
        std::vector<std::int32_t> cu_seqlens(static_cast<std::size_t>(seq_len) + 1);
        (void)fill_cu_seqlens(pieces, seq_len, extra, cu_seqlens);
        expect_mask(test::attention_mask::by_cu_seqlens(cu_seqlens), rows);
        ids positions(static_cast<std::size_t>(seq_len));
        fill_position_ids<std::int64_t>(cu_seqlens, positions);
        EXPECT_EQ(positions, found.position_ids);
        ++masks;
      }
    }
  }
  EXPECT_GE(samples, 20);
  EXPECT_GE(masks, 10);
}

}  // namespace
}  // namespace millrace::dataset
