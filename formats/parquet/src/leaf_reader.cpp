// SPDX-License-Identifier: Apache-2.0
#include "leaf_reader.hpp"

#include <algorithm>
#include <bit>
#include <string>

namespace millrace::parquet::detail {

void leaf_reader::restart(std::size_t row_group) {
  pages_.restart(row_group);
  entries_left_ = static_cast<std::uint64_t>(pages_.chunk().values);
  dictionary_.clear();
  may_have_skipped_dictionary_ = false;
  page_left_ = 0;
  at_ = end_ = 0;
  next_value_ = end_value_ = values_to_load_ = 0;
}

bool leaf_reader::next_page() {
  while (const page_header* header = pages_.next()) {
    if (header->type == page_type::dictionary) {
      dictionary_.load(pages_, *header, *leaf_);
      continue;
    }
    (void)take_entries(*header);
    open_page(*header);
    return true;
  }
  if (entries_left_ != 0) {
    pages_.where().fail("after the last page, " + std::to_string(entries_left_) +
                        " of the values that the footer states are missing");
  }
  return false;
}

// Counts the entries of a page, and returns their number.
std::uint64_t leaf_reader::take_entries(const page_header& header) {
  const auto entries = static_cast<std::uint64_t>(header.values);
  if (entries > entries_left_) {
    pages_.where().fail("the pages have more values than the footer states");
  }
  entries_left_ -= entries;
  return entries;
}

void leaf_reader::go_to(const row_cut& row) {
  if (row.row > entries_left_) {
    pages_.where().fail("the pages have more values than the footer states");
  }
  entries_left_ -= row.row;
  may_have_skipped_dictionary_ = true;
  pages_.go_to(row.page_offset);
}

// Pages that fall back to another encoding need no dictionary, so it is read only for one that
// does.
void leaf_reader::load_skipped_dictionary() {
  may_have_skipped_dictionary_ = false;
  page_reader first = pages_.from_start();
  const page_header* header = first.next();
  if (header != nullptr && header->type == page_type::dictionary) {
    dictionary_.load(first, *header, *leaf_);
  }
}

void leaf_reader::open_page(const page_header& header) {
  if (may_have_skipped_dictionary_ && needs_dictionary(header.values_encoding)) {
    load_skipped_dictionary();
  }
  page_left_ = static_cast<std::uint64_t>(header.values);
  encoding_ = header.values_encoding;
  number_decoder_.reset();
  text_decoder_.reset();
  const page_body body = pages_.load();
  repetition_runs_ =
      run_decoder(body.repetition, static_cast<unsigned>(std::bit_width(leaf_->most_repetition)));
  definition_runs_ =
      run_decoder(body.definition, static_cast<unsigned>(std::bit_width(leaf_->most_definition)));
  values_ = body.values;
}

void leaf_reader::read_levels(run_decoder& from, std::uint8_t most,
                              std::array<std::uint8_t, batch>& to, std::size_t count) {
  if (most == 0) return;  // all are 0, as they were made
  if (!from.read(to.data(), count)) pages_.where().fail("a page has fewer levels than values");
  std::uint8_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, to[i]);
  if (largest > most) {
    pages_.where().fail("a page has the level " + std::to_string(largest) +
                        ", but the largest of this column is " + std::to_string(most));
  }
}

bool leaf_reader::load_entries() {
  while (page_left_ == 0) {
    if (!next_page()) return false;
  }
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(page_left_, batch));
  read_levels(repetition_runs_, leaf_->most_repetition, repetition_, count);
  read_levels(definition_runs_, leaf_->most_definition, definition_, count);
  page_left_ -= count;
  at_ = 0;
  end_ = count;
  next_value_ = end_value_ = 0;
  values_to_load_ = static_cast<std::size_t>(
      std::count(definition_.data(), definition_.data() + count, leaf_->most_definition));
  all_have_values_ = values_to_load_ == count;
  return true;
}

void leaf_reader::load_values() {
  // Decoders are made late: a page without values may lack even the beginning of an encoding.
  const std::size_t count = values_to_load_;
  next_value_ = 0;
  if (leaf_->kind == value_kind::text) {
    if (!text_decoder_) {
      text_decoder_ = make_text_decoder(encoding_, values_, dictionary_, pages_.where());
    }
    end_value_ = text_decoder_->read(texts_.data(), count);
  } else {
    if (!number_decoder_) {
      number_decoder_ =
          make_number_decoder(encoding_, leaf_->type, values_, dictionary_, pages_.where());
    }
    number_decoder_->read(numbers_.data(), count);
    end_value_ = count;
  }
  values_to_load_ -= end_value_;
}

void leaf_reader::skip_pages(std::uint64_t& rows) {
  pages_.read_little();
  while (const page_header* header = pages_.next()) {
    if (header->type == page_type::dictionary) {
      pages_.skip();
      may_have_skipped_dictionary_ = true;
      continue;
    }
    const std::uint64_t entries = take_entries(*header);
    if (entries > rows) {
      pages_.read_much();
      open_page(*header);
      return;
    }
    rows -= entries;
    pages_.skip();
    if (rows == 0) break;
  }
  pages_.read_much();
}

void leaf_reader::skip_rows(std::uint64_t rows) {
  if (rows == 0) return;
  if (leaf_->most_repetition == 0) {
    skip_pages(rows);
    if (rows == 0) return;
  }
  // A row ends where the next one starts, so the last one is followed to its end.
  std::uint64_t started = 0;
  while (has_entry()) {
    if (repetition() == 0 && started++ == rows) return;
    if (has_value()) {
      if (leaf_->kind == value_kind::text) {
        (void)take_text();
      } else {
        (void)take_number();
      }
    }
    advance();
  }
  if (started < rows) where().fail("the pages have fewer rows than the footer states");
}

}  // namespace millrace::parquet::detail
