// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <millrace/dataset/detail/megatron/gpt_plan.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/unaligned_span.hpp>

namespace millrace::dataset {

/// Builds Megatron's sample index from its end, while the document index is still being shuffled.
///
/// Row j gives the place where sample j begins and sample j - 1 ends. The place consists of an
/// entry of the document index and an offset in the sequence of that entry. Megatron computes the
/// rows by walking all sequences from the first one. But the place of row j in the stream of all
/// shuffled sequences is known in advance: token j * L, where L is the sequence length. The end of
/// the stream is also known. A shuffle finalizes the last entries first, so this class writes the
/// rows from the end, as entries become final. It prefetches the lengths of later entries.
///
/// `Entry` is std::int32_t or std::int64_t. Use from one thread.
template <class Entry>
class sample_rows {
 public:
  /// @param lengths  lengths of all sequences of the `.idx`
  /// @param rows     [plan.samples + 1, 2], to be filled
  sample_rows(const gpt_plan& plan, formats::unaligned_span<std::int32_t> lengths,
              std::span<Entry> rows)
      : plan_(plan), lengths_(lengths), rows_(rows) {}

  /// Starts a range of entries that ends at token `end_tokens` of the stream. After this call, pass
  /// the entries of the range to `put`, beginning with the last ones.
  void start(std::int64_t end_tokens) noexcept;

  /// Processes entries of the document index. They must directly precede the entries of the
  /// previous call.
  ///
  /// @param first  index of documents[0] in the document index
  void put(std::int64_t first, std::span<const std::int32_t> documents) noexcept;

  /// Call this function after all entries were processed. Writes the first row and, if the last
  /// sample is partial, the last row.
  ///
  /// @param last_document  the last entry of the document index, if there is one
  /// @throws config_error  the last sample is partial and ends in an empty sequence; Megatron stops
  ///                       in this case.
  void finish(std::int32_t last_document, const std::string& whose);

 private:
  static constexpr std::size_t ahead = 64;  // entries between prefetch and use

  const gpt_plan& plan_;
  formats::unaligned_span<std::int32_t> lengths_;
  std::span<Entry> rows_;
  std::int64_t end_ = 0;   // the token at which the next entry to process ends
  std::int64_t row_ = -1;  // the next row to write
  // The token that row `row_` refers to: token row_ * L, or the token before it if samples have no
  // extra token. The row points to the entry that contains this token.
  std::int64_t at_ = -1;
};

// ---------------------------------------------------------------------------------------------

template <class Entry>
void sample_rows<Entry>::start(std::int64_t end_tokens) noexcept {
  end_ = end_tokens;
  const std::int64_t usable = end_tokens - plan_.extra_token;
  row_ = usable < 0 ? -1 : std::min(plan_.samples, usable / plan_.sequence_length);
  at_ = row_ * plan_.sequence_length + plan_.extra_token - 1;
}

template <class Entry>
void sample_rows<Entry>::put(std::int64_t first, std::span<const std::int32_t> documents) noexcept {
  const std::int64_t back = 1 - plan_.extra_token;
  const auto prefetch = [&](std::size_t i) {
    __builtin_prefetch(lengths_.bytes().data() +
                       sizeof(std::int32_t) * static_cast<std::size_t>(documents[i]));
  };
  const std::size_t size = documents.size();
  for (std::size_t i = size; i-- > 0 && size - i <= ahead;) prefetch(i);
  std::int64_t end = end_;
  for (std::size_t i = size; i-- > 0;) {
    if (i >= ahead) prefetch(i - ahead);
    const std::int64_t begin = end - lengths_[static_cast<std::size_t>(documents[i])];
    while (at_ >= begin) {
      Entry* const row = rows_.data() + 2 * row_;
      row[0] = static_cast<Entry>(first + static_cast<std::int64_t>(i));
      row[1] = static_cast<Entry>(at_ - begin + back);
      --row_;
      at_ -= plan_.sequence_length;
    }
    end = begin;
  }
  end_ = end;
}

template <class Entry>
void sample_rows<Entry>::finish(std::int32_t last_document, const std::string& whose) {
  if (plan_.last_sample_is_partial) {
    const std::int32_t length = lengths_[static_cast<std::size_t>(last_document)];
    if (length < plan_.extra_token && !plan_.wide_sample_index) {
      throw config_error(
          whose +
          " ends, after its shuffle, in an empty sequence after a partial sample, which Megatron "
          "rejects: drop the last partial sample, use another seed, or remove empty sequences");
    }
    rows_[rows_.size() - 2] = static_cast<Entry>(plan_.document_entries() - 1);
    rows_[rows_.size() - 1] = static_cast<Entry>(length - plan_.extra_token);
  }
  // The first row is always (0, 0), even if the first sequences are empty, because Megatron does
  // not skip them.
  rows_[0] = 0;
  rows_[1] = 0;
}

}  // namespace millrace::dataset
