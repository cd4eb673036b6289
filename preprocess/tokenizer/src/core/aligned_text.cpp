// SPDX-License-Identifier: Apache-2.0
#include "core/aligned_text.hpp"

#include <cstddef>
#include <utility>

#include "text/byte_alphabet.hpp"

namespace millrace::tokenizer::detail {

aligned_text::aligned_text(std::string_view original) : text_(original) {
  origins_.reserve(original.size());
  for (std::size_t at = 0; at < original.size();) {
    const std::size_t end = at + code_point_at(original, at).size_bytes;
    origins_.insert(origins_.end(), end - at, {at, end});
    at = end;
  }
}

void aligned_text::append(const aligned_text& from, std::size_t begin, std::size_t end) {
  text_.append(from.text_, begin, end - begin);
  origins_.insert(origins_.end(), from.origins_.begin() + static_cast<std::ptrdiff_t>(begin),
                  from.origins_.begin() + static_cast<std::ptrdiff_t>(end));
}

void aligned_text::keep(std::size_t begin, std::size_t end) {
  text_.resize(end);
  text_.erase(0, begin);
  origins_.resize(end);
  origins_.erase(origins_.begin(), origins_.begin() + static_cast<std::ptrdiff_t>(begin));
}

void aligned_text::put(std::uint32_t point, byte_span origin) {
  append_code_point(text_, point);
  origins_.resize(text_.size(), origin);
}

void aligned_text::transform(std::span<const changed_character> characters) {
  aligned_text made;
  made.text_.reserve(text_.size());
  made.origins_.reserve(text_.size());
  std::size_t at = 0;  // the next character of the old text
  const auto skip = [&](std::size_t count) {
    for (; count > 0 && at < text_.size(); --count) at += code_point_at(text_, at).size_bytes;
  };
  for (const changed_character& each : characters) {
    if (each.change > 0) {
      made.put(each.point, at == 0 ? byte_span() : origins_[at - 1]);
      continue;
    }
    // More characters than the old text has count as made from its last one.
    made.put(each.point, at < text_.size() ? origins_[at] : origins_.back());
    skip(1 + static_cast<std::size_t>(-static_cast<std::int64_t>(each.change)));
  }
  *this = std::move(made);
}

void aligned_text::prepend(std::string_view prefix) {
  if (empty()) return;
  text_.insert(0, prefix);
  origins_.insert(origins_.begin(), prefix.size(), byte_span(origins_.front()));
}

void aligned_text::spell_bytes() {
  aligned_text made;
  made.text_.reserve(2 * text_.size());
  made.origins_.reserve(2 * text_.size());
  for (std::size_t i = 0; i < text_.size(); ++i) {
    made.put(gpt2_alphabet.character[static_cast<unsigned char>(text_[i])], origins_[i]);
  }
  *this = std::move(made);
}

void aligned_text::replacement::replace(std::size_t begin, std::size_t end,
                                        std::string_view content) {
  made_.append(*of_, copied_, begin);
  made_.text_ += content;
  made_.origins_.resize(made_.text_.size(), of_->origins_[end - 1]);
  copied_ = end;
}

void aligned_text::replacement::finish() {
  made_.append(*of_, copied_, of_->text_.size());
  *of_ = std::move(made_);
}

}  // namespace millrace::tokenizer::detail
