// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/verify_gpt_index.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/megatron/gpt_index_view.hpp>
#include <millrace/dataset/detail/megatron/gpt_plan.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

namespace detail {

class gpt_index_verifier {
 public:
  gpt_index_verifier(const gpt_plan& plan, length_column lengths, const gpt_index_view& index)
      : plan_(plan), lengths_(lengths), index_(index) {}

  void run() const {
    const std::int64_t apart = plan_.separate_last_epoch ? 1 : 0;
    const std::int64_t joined = (plan_.epochs - apart) * plan_.sequences.size();
    verify_documents(0, joined, plan_.epochs - apart);
    if (apart != 0) verify_documents(joined, plan_.document_entries(), 1);
    verify_rows();
    const std::int64_t before = apart != 0 ? plan_.samples_before_last_epoch : plan_.samples;
    verify_shuffle(0, before);
    verify_shuffle(before, plan_.samples);
  }

  std::optional<bool> has_extra_token() const {
    const std::int64_t rows = plan_.samples + (plan_.last_sample_is_partial ? 0 : 1);
    // A row with offset 0 proves that there is an extra token. The first such row is usually found
    // early, and finding it needs no lengths.
    for (std::int64_t j = 1; j < rows; ++j) {
      if (index_.sample[2 * j + 1] == 0) return true;
    }
    for (std::int64_t j = 1; j < rows; ++j) {
      const std::int64_t entry = index_.sample[2 * j];
      if (entry < 0 || entry >= plan_.document_entries()) {
        refuse_row(j, "an entry of 0 to " + std::to_string(plan_.document_entries() - 1));
      }
      if (index_.sample[2 * j + 1] >= length_at(entry)) return false;
    }
    return std::nullopt;
  }

 private:
  std::int64_t sequence_at(std::int64_t entry) const {
    const std::int64_t sequence = index_.document[entry];
    if (plan_.sequences.first <= sequence && sequence < plan_.sequences.last) return sequence;
    refuse_document(entry, "expected " + std::to_string(plan_.sequences.first) + " to " +
                               std::to_string(plan_.sequences.last - 1));
  }
  std::int64_t length_at(std::int64_t entry) const {
    return lengths_[static_cast<std::size_t>(sequence_at(entry))];
  }

  void verify_documents(std::int64_t first, std::int64_t last, std::int64_t times) const {
    std::vector<std::int32_t> met(static_cast<std::size_t>(plan_.sequences.size()));
    for (std::int64_t entry = first; entry < last; ++entry) {
      const auto sequence = static_cast<std::size_t>(sequence_at(entry) - plan_.sequences.first);
      if (++met[sequence] <= times) continue;
      refuse_document(entry, "but entries " + std::to_string(first) + " to " +
                                 std::to_string(entry - 1) + " already have it " +
                                 std::to_string(times) + " times: expected each once per epoch");
    }
  }

  void verify_rows() const {
    const std::int64_t rows = plan_.samples + (plan_.last_sample_is_partial ? 0 : 1);
    verify_row(0, 0, 0);
    std::int64_t entry = 0;
    std::int64_t begin = 0;  // first token of the entry, in the stream
    std::int64_t length = plan_.document_entries() > 0 ? length_at(0) : 0;
    for (std::int64_t j = 1; j < rows; ++j) {
      const std::int64_t token = j * plan_.sequence_length;
      while (token + plan_.extra_token > begin + length) {
        begin += length;
        // The next entry exists, because the entries have tokens for all rows.
        length = length_at(++entry);
      }
      verify_row(j, entry, token - begin);
    }
    if (!plan_.last_sample_is_partial) return;
    const std::int64_t last = plan_.document_entries() - 1;
    verify_row(plan_.samples, last, length_at(last) - plan_.extra_token);
  }

  void verify_row(std::int64_t j, std::int64_t entry, std::int64_t offset) const {
    if (index_.sample[2 * j] == entry && index_.sample[2 * j + 1] == offset) return;
    refuse_row(j, "(" + std::to_string(entry) + ", " + std::to_string(offset) + ")");
  }

  void verify_shuffle(std::int64_t first, std::int64_t last) const {
    std::vector<bool> met(static_cast<std::size_t>(last - first));
    for (std::int64_t k = first; k < last; ++k) {
      const std::int64_t sample = index_.shuffle[k];
      const bool inside = first <= sample && sample < last;
      if (inside && !met[static_cast<std::size_t>(sample - first)]) {
        met[static_cast<std::size_t>(sample - first)] = true;
        continue;
      }
      throw format_error(index_.shuffle_path, byte(index_.shuffle_offset, index_.shuffle, k),
                         "entry " + std::to_string(k) + " is sample " + std::to_string(sample) +
                             (inside ? ", as an entry before it is" : "") + ": expected each of " +
                             std::to_string(first) + " to " + std::to_string(last - 1) + " once");
    }
  }

  static std::uint64_t byte(std::uint64_t offset, const index_numbers& column, std::int64_t i) {
    return offset + column.number_bytes() * static_cast<std::uint64_t>(i);
  }
  [[noreturn]] void refuse_document(std::int64_t entry, const std::string& why) const {
    throw format_error(index_.document_path, byte(index_.document_offset, index_.document, entry),
                       "entry " + std::to_string(entry) + " is sequence " +
                           std::to_string(index_.document[entry]) + ", " + why);
  }
  [[noreturn]] void refuse_row(std::int64_t j, const std::string& expected) const {
    throw format_error(index_.sample_path, byte(index_.sample_offset, index_.sample, 2 * j),
                       "row " + std::to_string(j) + " is (" + std::to_string(index_.sample[2 * j]) +
                           ", " + std::to_string(index_.sample[2 * j + 1]) + "), expected " +
                           expected);
  }

  const gpt_plan& plan_;
  length_column lengths_;
  const gpt_index_view& index_;
};

}  // namespace detail

MILLRACE_INLINE void verify_gpt_index(const gpt_plan& plan, length_column lengths,
                                      const gpt_index_view& index) {
  detail::gpt_index_verifier(plan, lengths, index).run();
}

MILLRACE_INLINE std::optional<bool> has_extra_token(const gpt_plan& plan, length_column lengths,
                                                    const gpt_index_view& index) {
  return detail::gpt_index_verifier(plan, lengths, index).has_extra_token();
}

}  // namespace millrace::dataset
