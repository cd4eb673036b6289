// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/run/sample_text.hpp>
#include <millrace/dataset/detail/sample/field_options.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/loader/detail/ranks/context_slices.hpp>

namespace millrace::loader::detail {

/// Which part of each row a rank serves, and where its position ids restart.
struct context_rules {
  std::int64_t context_parallel = 1;  ///< 1: whole rows
  std::int64_t cp_rank = 0;
  std::int64_t seq_len = 0;  ///< number of tokens in a whole row
  bool packed = false;
  bool last_token_as_label = false;      ///< see `dataset::packed_options`
  bool positions_at_boundaries = false;  ///< position ids restart at document boundaries
  /// The token after which position ids restart, if `positions_at_boundaries` is false. `no_token`
  /// if position ids do not depend on tokens.
  std::int64_t eod = dataset::no_token;
  std::int64_t pad = -1;  ///< the value of padding, which may be `eod`

  /// True if a rank serves less than the tokens of a row: some are other ranks', or only labels.
  bool cuts() const noexcept { return context_parallel > 1 || last_token_as_label; }
};

/// A chunk: tokens [first, first + length) of a whole row. The text that was cut into chunks is the
/// row or, if the row is packed, one of its documents. This text begins at `begin`, and its padding
/// begins at `real`. All three are offsets in the text of the whole row (`dataset::row_part`). If
/// the last tokens of documents are only labels, that token is at `real`.
struct row_chunk {
  std::int64_t first;
  std::int64_t length;
  std::int64_t begin;
  std::int64_t real;
  std::int64_t document;  ///< number of the document, from 1; 1 if the row is not packed
};

/// Calls `visit` with each of the rank's chunks of a row, in order. A row that is not packed is cut
/// as one text, as in `get_batch_on_this_cp_rank` of megatron-core. A packed row is cut document by
/// document, as in `thd_get_partitioned_indices` of Transformer Engine: each document, including
/// its padding, has 2 * CP chunks. The rank gets two of these, which `context_slices` selects.
///
/// @throws config_error  the length of a document, or of a row that is not packed, is not a
///                       multiple of 2 * CP
template <class Visit>
void for_each_chunk(const context_rules& rules, const dataset::sample_text& row,
                    const Visit& visit) {
  const std::int64_t cp = rules.context_parallel;
  const auto cut = [&](row_chunk text, std::int64_t end) {
    if (cp > 1 && (end - text.begin) % (2 * cp) != 0) {
      throw config_error("sample " + std::to_string(row.position) + " has a document of " +
                         std::to_string(end - text.begin) +
                         " tokens with its padding, expected a multiple of " +
                         std::to_string(2 * cp) + ", twice the context parallelism of " +
                         std::to_string(cp) + ": pad documents to that multiple");
    }
    const context_slices own(end - text.begin, cp, rules.cp_rank);
    for (const row_slice& each : own.slices()) {
      text.first = text.begin + each.first;
      text.length = each.length;
      visit(text);
    }
  };
  if (!rules.packed) return cut({0, 0, 0, row.real, 1}, rules.seq_len);
  for (std::size_t i = 1; i < row.boundaries.size(); ++i) {
    const auto document = static_cast<std::int64_t>(i);
    const std::int64_t labels = rules.last_token_as_label ? document - 1 : 0;  // before this one
    cut({0, 0, row.boundaries[i - 1] + labels, row.document_ends[i] + labels, document},
        row.boundaries[i] + labels);
  }
}

/// Reduces planned rows to the parts that a context-parallel rank reads. Used by one thread. Once
/// the largest row has been reduced, no call allocates memory.
class MILLRACE_EXPORT context_plan {
 public:
  context_plan() = default;  ///< keeps whole rows

  /// @param types  token types of the sources, indexed by source
  context_plan(const context_rules& rules, std::vector<formats::dtype> types)
      : rules_(rules), types_(std::move(types)) {}

  /// Removes the parts of the row that the rank does not read. The rank reads its chunks, and the
  /// token after each chunk, which is the label of the chunk's last token. If position ids restart
  /// after an eod, the rank also reads all tokens of the row or document before its chunks. The
  /// last eod in these tokens determines the position ids of a chunk.
  ///
  /// @throws config_error  see `for_each_chunk`; or the documents of a packed row do not cover the
  ///                       whole row
  void reduce(dataset::sample_text& row);

 private:
  void check_documents(const dataset::sample_text& row) const;
  void keep_ranges(dataset::sample_text& row);

  context_rules rules_;
  std::vector<formats::dtype> types_;
  std::vector<row_slice> ranges_;         // ranges of one row to read
  std::vector<dataset::row_part> parts_;  // parts of one row before the reduction
};

}  // namespace millrace::loader::detail
