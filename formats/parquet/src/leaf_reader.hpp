// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include <millrace/parquet/selection.hpp>

#include "page_reader.hpp"
#include "run_decoder.hpp"
#include "value_decoder.hpp"

namespace millrace::parquet::detail {

/// Reads a column of a row group entry by entry. An entry is a value, a null or an empty list.
///
/// While `has_entry()`, an entry has a repetition level and a definition level. If the latter is
/// the column's largest one, the entry has a value, which must be taken exactly once before
/// `advance`.
class leaf_reader {
 public:
  /// Call restart() before anything else.
  leaf_reader(const selected_columns& columns, const selected_leaf& leaf)
      : leaf_(&leaf), pages_(columns, leaf) {}

  /// Begins with the first entry of a row group, and keeps the memory.
  void restart(std::size_t row_group);

  /// False after the last entry. Reads the next page if it must; so taken texts become invalid.
  ///
  /// @throws format_error  damage, or the pages have more or fewer entries than the footer states
  bool has_entry() { return at_ != end_ || load_entries(); }

  // @pre has_entry() returned true since the last advance()
  std::uint8_t repetition() const noexcept { return repetition_[at_]; }
  std::uint8_t definition() const noexcept { return definition_[at_]; }
  bool has_value() const noexcept { return definition() == leaf_->most_definition; }
  void advance() noexcept { ++at_; }

  /// Takes the value of the entry. @pre has_value(), and the column has texts
  std::string_view take_text() {
    if (next_value_ == end_value_) load_values();
    return texts_[next_value_++];
  }
  /// Takes the value of the entry, as `number_decoder` gives it. @pre has_value(), as above
  std::uint64_t take_number() {
    if (next_value_ == end_value_) load_values();
    return numbers_[next_value_++];
  }

  /// Takes the value of the current entry, and the values of the entries after it while these are
  /// decoded, belong to the same list and have a value. Moves to the next entry. The result is
  /// valid until the next call. @pre has_value(), and the column has numbers
  std::span<const std::uint64_t> take_numbers() {
    if (next_value_ == end_value_) load_values();  // all that the decoded entries have
    std::size_t end = at_ + 1;
    if (end != end_) {
      const void* row = std::memchr(repetition_.data() + end, 0, end_ - end);
      const std::size_t most =
          row == nullptr ? end_
                         : static_cast<std::size_t>(static_cast<const std::uint8_t*>(row) -
                                                    repetition_.data());
      if (all_have_values_) {
        end = most;
      } else {
        while (end != most && definition_[end] == leaf_->most_definition) ++end;
      }
    }
    const std::size_t count = end - at_;
    at_ = end;
    next_value_ += count;
    return {numbers_.data() + next_value_ - count, count};
  }

  /// Passes over rows; over whole pages without decoding them where that is possible.
  ///
  /// @throws format_error  there are fewer rows.
  void skip_rows(std::uint64_t rows);
  /// Continues with the page at which a row begins. @pre nothing was read, and the column is flat
  void go_to(const row_cut& row);

  const selected_leaf& leaf() const noexcept { return *leaf_; }
  const place& where() const noexcept { return pages_.where(); }

 private:
  static constexpr std::size_t batch = 1024;

  bool load_entries();
  bool next_page();
  std::uint64_t take_entries(const page_header& header);
  void open_page(const page_header& header);
  void load_skipped_dictionary();
  void read_levels(run_decoder& from, std::uint8_t most, std::array<std::uint8_t, batch>& to,
                   std::size_t count);
  void load_values();
  void skip_pages(std::uint64_t& rows);

  const selected_leaf* leaf_;
  page_reader pages_;
  dictionary dictionary_;
  bool may_have_skipped_dictionary_ = false;
  std::uint64_t entries_left_ = 0;  // of the column, without those of the page

  // The current page.
  std::uint64_t page_left_ = 0;
  run_decoder repetition_runs_;
  run_decoder definition_runs_;
  encoding encoding_{};
  std::span<const char> values_;
  std::unique_ptr<number_decoder> number_decoder_;
  std::unique_ptr<text_decoder> text_decoder_;

  // The entries [at_, end_) that are decoded.
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  bool all_have_values_ = false;
  std::array<std::uint8_t, batch> repetition_{};
  std::array<std::uint8_t, batch> definition_{};
  // The values [next_value_, end_value_) that are decoded, and how many more the entries have.
  std::size_t next_value_ = 0;
  std::size_t end_value_ = 0;
  std::size_t values_to_load_ = 0;
  std::array<std::string_view, batch> texts_;
  std::array<std::uint64_t, batch> numbers_;
};

}  // namespace millrace::parquet::detail
