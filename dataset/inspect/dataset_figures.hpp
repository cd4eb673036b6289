// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/statistics.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/formats/token_texts.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "dataset_tokenizer.hpp"

/// The figures that `stats` and `report` show.
namespace millrace::inspect {

/// Bytes of text in a dataset.
struct text_size {
  std::int64_t bytes = 0;   ///< without the texts of special tokens
  std::int64_t tokens = 0;  ///< tokens that are not special
  bool exact = false;       ///< if false, the text of some tokens depends on the tokens before them
};

/// What one pass over one or several datasets finds.
struct dataset_figures {
  std::vector<dataset::input_share> datasets;  ///< the share of each; `input` is its prefix
  dataset::dataset_statistics counts;
  /// By `.src`, most tokens first; nullopt if a dataset has none.
  std::optional<std::vector<dataset::input_share>> inputs;
  std::shared_ptr<const tokenizer::tokenizer> tokenizer;  ///< null if unknown
  std::optional<formats::token_texts> texts;
  std::optional<std::int64_t> vocab_size;  ///< given, or that of the tokenizer or of the `.meta`
  std::optional<std::int64_t> special_tokens;  ///< how many tokens are special
  std::optional<text_size> text;
  /// Trained tokens per document, of the datasets with masks; nullopt if there are none.
  std::optional<dataset::length_counts> trained;
  std::int64_t masked_tokens = 0;  ///< tokens of the datasets with masks

  bool hide_texts = false;

  /// The text of an id; nullopt without a tokenizer, or if texts are hidden.
  std::optional<std::string> text_of(std::int64_t id) const;
  /// Ids below the vocabulary size that do not occur.
  /// @pre vocab_size
  std::int64_t never_seen() const { return *vocab_size - counts.ids.distinct_below(*vocab_size); }
};

/// Reads the datasets. Shows progress on a terminal.
///
/// @param vocab_size  replaces that of the tokenizer
/// @throws config_error  the datasets have different tokenizers
/// @throws config_error, format_error, io_error  as dataset::statistics_of
dataset_figures figures_of(const std::vector<dataset::indexed_dataset>& data,
                           dataset_tokenizers& tokenizers, std::optional<std::int64_t> vocab_size,
                           int workers);

/// Writes the members of a JSON object.
/// @param most_ids  number of the most frequent ids
void write_figures(formats::json_writer& json, const dataset_figures& figures,
                   std::size_t most_ids);

/// The quantiles of lengths that are shown, with their names: "5" for 5 %.
inline constexpr std::pair<double, const char*> length_quantiles[] = {
    {0.01, "1"}, {0.05, "5"}, {0.25, "25"}, {0.5, "50"}, {0.75, "75"}, {0.95, "95"}, {0.99, "99"},
};

}  // namespace millrace::inspect
