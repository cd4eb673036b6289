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

/// What a context-parallel rank serves of each row, and how its position ids count.
struct context_rules {
  std::int64_t context_parallel = 1;  ///< 1: whole rows
  std::int64_t cp_rank = 0;
  std::int64_t seq_len = 0;  ///< tokens of a whole row
  bool packed = false;
  bool positions_at_boundaries = false;  ///< position ids restart at each boundary of the index
  /// The token after which position ids restart, if `positions_at_boundaries` is false; none if
  /// they do not depend on token values.
  std::int64_t eod = dataset::no_token;
  std::int64_t pad = -1;  ///< the value of padding, which may be `eod`

  bool cuts() const noexcept { return context_parallel > 1; }
};

/// Tokens [first, first + length) of a whole row. `begin` is the first token of what was cut into
/// chunks: the row or, in a packed row, the document. Its tokens from `real` on are padding.
struct row_chunk {
  std::int64_t first;
  std::int64_t length;
  std::int64_t begin;
  std::int64_t real;
  std::int64_t document;  ///< its number in the row, from 1; 1 if the row is not packed
};

/// Calls visit(row_chunk) for the rank's chunks of a row, in order. A row that is not packed is cut
/// as one text, like `get_batch_on_this_cp_rank` of megatron-core does. A packed row is cut
/// document by document, like `thd_get_partitioned_indices` of Transformer Engine does: each
/// document, with its padding, has 2 * CP chunks, of which the rank gets the two of
/// `context_slices`.
///
/// @throws config_error  a document does not have 2 * CP chunks of equal length
template <class Visit>
void for_each_chunk(const context_rules& rules, const dataset::sample_text& row,
                    const Visit& visit) {
  const std::int64_t cp = rules.context_parallel;
  const auto cut = [&](row_chunk text, std::int64_t end) {
    if ((end - text.begin) % (2 * cp) != 0) {
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
    cut({0, 0, row.boundaries[i - 1], row.document_ends[i], static_cast<std::int64_t>(i)},
        row.boundaries[i]);
  }
}

/// Reduces planned rows to what a context-parallel rank reads. Used by one thread. Allocates
/// nothing once it has seen the largest row.
class MILLRACE_EXPORT context_plan {
 public:
  context_plan() = default;  ///< reduces nothing

  /// @param types  of the sources' tokens, indexed by source
  context_plan(const context_rules& rules, std::vector<formats::dtype> types)
      : rules_(rules), types_(std::move(types)) {}

  /// Removes the parts that the rank does not read. It reads its chunks and one more token after
  /// each: the label of the last token. If position ids restart after an eod, it also reads
  /// everything before its chunks, because the last eod there determines them.
  ///
  /// @throws config_error  as `for_each_chunk`, or the documents are not the whole row
  void reduce(dataset::sample_text& row);

 private:
  void check_documents(const dataset::sample_text& row) const;
  void keep_ranges(dataset::sample_text& row);

  context_rules rules_;
  std::vector<formats::dtype> types_;
  std::vector<row_slice> ranges_;         // to read, of one row
  std::vector<dataset::row_part> parts_;  // of one row, before they are reduced
};

}  // namespace millrace::loader::detail
