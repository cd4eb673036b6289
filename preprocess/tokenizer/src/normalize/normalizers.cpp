// SPDX-License-Identifier: Apache-2.0
#include "normalize/normalizers.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <millrace/formats/detail/in_quotes.hpp>

#include "normalize/change_characters.hpp"
#include "text/byte_alphabet.hpp"
#include "unicode/code_point_set.hpp"
#include "unicode/unicode_classes.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

class form_normalizer final : public normalizer {
 public:
  explicit form_normalizer(normal_form form) : form_(form) {}
  std::string_view normalize(std::string_view text, std::string& buffer,
                             growth_limit& limit) const override {
    limit.begin(name());
    return normalize_to(form_, text, buffer, [&](std::size_t made) { limit.expect(made); });
  }

  void align(aligned_text& text) const override { text.transform(changes_of(form_, text.text())); }

  // A cut needs two properties of the characters on both sides of it: the form does not change
  // them, and they never compose with the text before them. The second character after the cut must
  // have both properties too, because a mark there could compose with the first.
  bool may_cut(std::string_view text, std::size_t at) const override {
    const std::size_t next = at + code_point_at(text, at).size_bytes;
    if (next == text.size()) return false;
    const neighbours around = neighbours_at(text, at);
    return stays(around.left) && stays(around.right) && stays(code_point_at(text, next).value);
  }

 private:
  const char* name() const noexcept {
    constexpr std::array<const char*, 4> names = {"NFC", "NFD", "NFKC", "NFKD"};
    return names[static_cast<std::size_t>(form_)];
  }

  bool stays(std::uint32_t c) const noexcept {
    if (c < 0x80) return true;
    if (form_ == normal_form::nfd || form_ == normal_form::nfkd) return false;
    return c == 0x3001 || c == 0x3002 ||    // ideographic comma and full stop
           (c >= 0x3041 && c <= 0x3096) ||  // Hiragana
           (c >= 0x30A1 && c <= 0x30FA) ||  // Katakana
           (c >= 0x4E00 && c <= 0x9FA5) ||  // ideographs
           (c >= 0x0410 && c <= 0x044F && c != 0x0419 && c != 0x0439);  // Cyrillic
  }

  normal_form form_;
};

class strip_normalizer final : public normalizer {
 public:
  strip_normalizer(bool left, bool right) : left_(left), right_(right) {}

  std::string_view normalize(std::string_view text, std::string&, growth_limit&) const override {
    while (left_ && !text.empty()) {
      const code_point point = code_point_at(text, 0);
      if (class_of(point.value) != char_class::space) break;
      text.remove_prefix(point.size_bytes);
    }
    while (right_ && !text.empty()) {
      const std::size_t at = character_before(text, text.size());
      if (class_of(code_point_at(text, at).value) != char_class::space) break;
      text.remove_suffix(text.size() - at);
    }
    return text;
  }

  void align(aligned_text& text) const override {
    const std::string_view before = text.text();
    std::string unused;
    growth_limit none = growth_limit::none();
    const std::string_view rest = normalize(before, unused, none);
    const auto begin = static_cast<std::size_t>(rest.data() - before.data());
    text.keep(begin, begin + rest.size());
  }

 private:
  bool left_;
  bool right_;
};

class strip_accents_normalizer final : public normalizer {
 public:
  std::string_view normalize(std::string_view text, std::string& buffer,
                             growth_limit& limit) const override {
    limit.begin("StripAccents");
    return change_characters(text, buffer, limit, ascii_, [this](std::uint32_t point) {
      return marks_.contains(point) ? dropped : point;
    });
  }

  void align(aligned_text& text) const override {
    text.filter([this](std::uint32_t point) { return !marks_.contains(point); });
  }

 private:
  code_point_set marks_{reference_set::combining_mark};
  ascii_change ascii_{[](std::uint32_t point) { return point; }};
};

std::uint32_t nmt_of(std::uint32_t point) noexcept {
  if (point < 0x20) {
    if (point == 0) return point;
    return point == '\t' || point == '\n' || point == '\f' || point == '\r' ? ' ' : dropped;
  }
  switch (point) {
    case 0x7F:
    case 0x8F:
    case 0x9F:
      return dropped;
    case 0x1680:
    case 0x200B:
    case 0x200C:
    case 0x200D:
    case 0x200E:
    case 0x200F:
    case 0x2028:
    case 0x2029:
    case 0x2581:
    case 0xFEFF:
    case 0xFFFD:
      return ' ';
    default:
      return point;
  }
}

class nmt_normalizer final : public normalizer {
 public:
  std::string_view normalize(std::string_view text, std::string& buffer,
                             growth_limit& limit) const override {
    limit.begin("Nmt");
    return change_characters(text, buffer, limit, ascii_, nmt_of);
  }

  void align(aligned_text& text) const override {
    text.filter([](std::uint32_t point) { return nmt_of(point) != dropped; });
    text.map(nmt_of);
  }

 private:
  ascii_change ascii_{nmt_of};
};

class byte_level_normalizer final : public normalizer {
 public:
  std::string_view normalize(std::string_view text, std::string& buffer,
                             growth_limit& limit) const override {
    limit.begin("ByteLevel");
    buffer.clear();
    for (std::size_t at = 0; at < text.size(); at += growth_limit::unchecked_bytes) {
      limit.expect(buffer.size());
      for (const char byte : text.substr(at, growth_limit::unchecked_bytes)) {
        append_small_code_point(buffer, gpt2_alphabet.character[static_cast<unsigned char>(byte)]);
      }
    }
    return buffer;
  }

  void align(aligned_text& text) const override { text.spell_bytes(); }
};

class prepend_normalizer final : public normalizer {
 public:
  explicit prepend_normalizer(std::string prefix) : prefix_(std::move(prefix)) {}
  std::string_view normalize(std::string_view text, std::string& buffer,
                             growth_limit& limit) const override {
    if (text.empty()) return text;
    limit.begin("Prepend");
    limit.expect(prefix_.size() + text.size());
    buffer = prefix_;
    buffer += text;
    return buffer;
  }

  void align(aligned_text& text) const override { text.prepend(prefix_); }

 private:
  std::string prefix_;
};

class replace_normalizer final : public normalizer {
 public:
  replace_normalizer(std::string pattern, std::string content)
      : pattern_(std::move(pattern)),
        content_(std::move(content)),
        name_("Replace " + formats::in_quotes(pattern_)) {}

  std::string_view normalize(std::string_view text, std::string& buffer,
                             growth_limit& limit) const override {
    limit.begin(name_);
    std::size_t found = text.find(pattern_);
    if (found == std::string_view::npos) return text;
    buffer.clear();
    std::size_t copied = 0;
    for (; found != std::string_view::npos; found = text.find(pattern_, copied)) {
      limit.expect(buffer.size() + (found - copied) + content_.size());
      buffer.append(text, copied, found - copied).append(content_);
      copied = found + pattern_.size();
    }
    limit.expect(buffer.size() + (text.size() - copied));
    buffer.append(text, copied);
    return buffer;
  }

  void align(aligned_text& text) const override {
    aligned_text::replacement parts(text);
    std::size_t found = text.text().find(pattern_);
    while (found != std::string_view::npos) {
      const std::size_t end = found + pattern_.size();
      parts.replace(found, end, content_);
      found = text.text().find(pattern_, end);
    }
    parts.finish();
  }

 private:
  std::string pattern_;
  std::string content_;
  std::string name_;
};

class normalizer_sequence final : public normalizer {
 public:
  explicit normalizer_sequence(std::vector<normalizer_pointer> steps) : steps_(std::move(steps)) {}

  std::string_view normalize(std::string_view text, std::string& buffer,
                             growth_limit& limit) const override {
    std::string other;
    bool in_buffer = false;  // `text` is in `buffer`, not in `other` or the caller's memory
    for (const normalizer_pointer& step : steps_) {
      std::string& free = in_buffer ? other : buffer;
      const std::string_view before = text;
      text = step->normalize(text, free, limit);
      // A step may return a part of its input. Then `text` is still in the same buffer.
      const bool kept = text.data() >= before.data() &&
                        text.data() + text.size() <= before.data() + before.size();
      if (!kept) in_buffer = !in_buffer;
    }
    return finish(text, buffer, other);
  }

  void align(aligned_text& text) const override {
    for (const normalizer_pointer& step : steps_) step->align(text);
  }

  bool may_cut(std::string_view text, std::size_t at) const override {
    return std::ranges::all_of(steps_, [&](const auto& step) { return step->may_cut(text, at); });
  }

 private:
  static std::string_view finish(std::string_view text, std::string& buffer, std::string& other) {
    const bool in_other =
        text.data() >= other.data() && text.data() + text.size() <= other.data() + other.size();
    if (!in_other || text.empty()) return text.empty() ? std::string_view() : text;
    const auto offset = static_cast<std::size_t>(text.data() - other.data());
    const std::size_t size = text.size();
    buffer = std::move(other);
    return std::string_view(buffer).substr(offset, size);
  }

  std::vector<normalizer_pointer> steps_;
};

}  // namespace

normalizer_pointer make_normal_form(normal_form form) {
  return std::make_unique<form_normalizer>(form);
}
normalizer_pointer make_strip(bool left, bool right) {
  return std::make_unique<strip_normalizer>(left, right);
}
normalizer_pointer make_strip_accents() {
  return std::make_unique<strip_accents_normalizer>();
}
normalizer_pointer make_nmt() {
  return std::make_unique<nmt_normalizer>();
}
normalizer_pointer make_byte_level_normalizer() {
  return std::make_unique<byte_level_normalizer>();
}
normalizer_pointer make_prepend(std::string prefix) {
  return std::make_unique<prepend_normalizer>(std::move(prefix));
}
normalizer_pointer make_replace(std::string pattern, std::string content) {
  return std::make_unique<replace_normalizer>(std::move(pattern), std::move(content));
}
normalizer_pointer make_normalizer_sequence(std::vector<normalizer_pointer> steps) {
  return std::make_unique<normalizer_sequence>(std::move(steps));
}

}  // namespace millrace::tokenizer::detail
