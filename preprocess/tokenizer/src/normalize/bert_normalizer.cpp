// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "normalize/change_characters.hpp"
#include "normalize/normalizers.hpp"
#include "unicode/code_point_set.hpp"
#include "unicode/unicode_classes.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

class lowercase_normalizer final : public normalizer {
 public:
  lowercase_normalizer() {
    for (std::size_t i = 0; i < lowercase_pairs_size; ++i) {
      changing_.add(lowercase_pairs[i].from, lowercase_pairs[i].from);
    }
    changing_.add(dotted_i, dotted_i);
  }

  std::string_view normalize(std::string_view text, std::string& buffer,
                             growth_limit& limit) const override {
    limit.begin("Lowercase");
    if (text.find("\xC4\xB0") != std::string_view::npos) return with_dotted_i(text, buffer, limit);
    return change_characters(text, buffer, limit, ascii_,
                             [this](std::uint32_t point) { return lower(point); });
  }

  void align(aligned_text& text) const override {
    std::vector<changed_character> changes;
    for (std::size_t at = 0; at < text.text().size();) {
      const code_point point = code_point_at(text.text(), at);
      at += point.size_bytes;
      const bool dotted = point.value == dotted_i;
      changes.push_back({dotted ? 'i' : lower(point.value), 0});
      if (dotted) changes.push_back({0x307, 1});
    }
    text.transform(changes);
  }

  // Each character changes independently of all others. But may_cut() must also ensure that the
  // characters next to the cut do not change, except for the case of ASCII letters.
  bool may_cut(std::string_view text, std::size_t at) const override {
    const neighbours around = neighbours_at(text, at);
    return (around.left | around.right) < 0x80;
  }

 private:
  static constexpr std::uint32_t dotted_i = 0x130;  // only its lower case has two characters

  std::uint32_t lower(std::uint32_t point) const noexcept {
    if (point < 0x80) return ascii_.of(static_cast<unsigned char>(point));
    return changing_.contains(point) ? lowercase_of(point) : point;
  }

  std::string_view with_dotted_i(std::string_view text, std::string& buffer,
                                 growth_limit& limit) const {
    buffer.clear();
    std::size_t check_at = 0;
    for (std::size_t at = 0; at < text.size();) {
      if (at >= check_at) {
        limit.expect(buffer.size());
        check_at = at + growth_limit::unchecked_bytes;
      }
      const code_point point = code_point_at(text, at);
      at += point.size_bytes;
      if (point.value == dotted_i) {
        buffer += "i\xCC\x87";
      } else {
        append_code_point(buffer, lower(point.value));
      }
    }
    return buffer;
  }

  code_point_set changing_;
  ascii_change ascii_{[](std::uint32_t c) { return c - 'A' < 26 ? c + ('a' - 'A') : c; }};
};

class clean_normalizer final : public normalizer {
 public:
  std::string_view normalize(std::string_view text, std::string& buffer,
                             growth_limit& limit) const override {
    limit.begin("BertNormalizer");
    return change_characters(text, buffer, limit, ascii_,
                             [this](std::uint32_t point) { return clean(point); });
  }

  void align(aligned_text& text) const override {
    text.filter([this](std::uint32_t point) { return clean(point) != dropped; });
    text.map([this](std::uint32_t point) { return clean(point); });
  }

 private:
  std::uint32_t clean(std::uint32_t point) const noexcept {
    if (controls_.contains(point)) return dropped;
    return class_of(point) == char_class::space ? ' ' : point;
  }

  code_point_set controls_{reference_set::bert_control};
  ascii_change ascii_{[this](std::uint32_t point) { return clean(point); }};
};

class chinese_normalizer final : public normalizer {
 public:
  std::string_view normalize(std::string_view text, std::string& buffer,
                             growth_limit& limit) const override {
    limit.begin("BertNormalizer");
    std::size_t copied = 0;
    bool changed = false;
    for (std::size_t at = 0; at < text.size();) {
      // In UTF-8, every ideograph begins with a byte from E3 to F0.
      if (static_cast<unsigned char>(text[at]) < 0xE3) {
        ++at;
        continue;
      }
      const code_point point = code_point_at(text, at);
      const std::size_t end = at + point.size_bytes;
      if (is_bert_chinese(point.value)) {
        if (!changed) buffer.clear();
        changed = true;
        limit.expect(buffer.size() + (end - copied) + 2);
        buffer.append(text, copied, at - copied) += ' ';
        buffer.append(text, at, end - at) += ' ';
        copied = end;
      }
      at = end;
    }
    if (!changed) return text;
    buffer.append(text, copied);
    return buffer;
  }

  void align(aligned_text& text) const override {
    std::vector<changed_character> changes;
    for (std::size_t at = 0; at < text.text().size();) {
      const code_point point = code_point_at(text.text(), at);
      at += point.size_bytes;
      if (!is_bert_chinese(point.value)) {
        changes.push_back({point.value, 0});
        continue;
      }
      changes.insert(changes.end(), {{' ', 0}, {point.value, 1}, {' ', 1}});
    }
    text.transform(changes);
  }
};

class nonspacing_mark_normalizer final : public normalizer {
 public:
  std::string_view normalize(std::string_view text, std::string& buffer,
                             growth_limit& limit) const override {
    limit.begin("BertNormalizer");
    return change_characters(text, buffer, limit, ascii_, [this](std::uint32_t point) {
      return marks_.contains(point) ? dropped : point;
    });
  }

  void align(aligned_text& text) const override {
    text.filter([this](std::uint32_t point) { return !marks_.contains(point); });
  }

 private:
  code_point_set marks_{reference_set::bert_nonspacing_mark};
  ascii_change ascii_{[](std::uint32_t point) { return point; }};
};

}  // namespace

normalizer_pointer make_lowercase() {
  return std::make_unique<lowercase_normalizer>();
}

normalizer_pointer make_bert_normalizer(const bert_steps& steps) {
  std::vector<normalizer_pointer> sequence;
  if (steps.clean_text) sequence.push_back(std::make_unique<clean_normalizer>());
  if (steps.handle_chinese_chars) sequence.push_back(std::make_unique<chinese_normalizer>());
  if (steps.strip_accents) {
    sequence.push_back(make_normal_form(normal_form::nfd));
    sequence.push_back(std::make_unique<nonspacing_mark_normalizer>());
  }
  if (steps.lowercase) sequence.push_back(make_lowercase());
  return make_normalizer_sequence(std::move(sequence));
}

}  // namespace millrace::tokenizer::detail
