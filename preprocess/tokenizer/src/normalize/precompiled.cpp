// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "normalize/normalizers.hpp"
#include "unicode/grapheme_class.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

// Reads the grapheme clusters of a text in order.
class cluster_reader {
 public:
  explicit cluster_reader(std::string_view text) : text_(text) {}

  std::size_t at() const noexcept { return at_; }

  /// Skips to offset `at`. All characters up to there must be ASCII, and each must be a cluster.
  void skip_to(std::size_t at) noexcept {
    if (at == at_) return;
    at_ = at;
    boundaries_ = {};
    first_is_known_ = false;
  }

  /// @pre at() is before the end of the text
  std::string_view next() noexcept {
    const std::size_t begin = at_;
    if (!first_is_known_) boundaries_.begins(class_here());
    first_is_known_ = false;
    do {
      at_ += code_point_at(text_, at_).size_bytes;
      if (at_ == text_.size()) return text_.substr(begin);
    } while (!boundaries_.begins(class_here()));
    first_is_known_ = true;
    return text_.substr(begin, at_ - begin);
  }

 private:
  grapheme_class class_here() const noexcept {
    return grapheme_class_of(code_point_at(text_, at_).value);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  grapheme_boundaries boundaries_;
  bool first_is_known_ = false;  // true if boundaries_ already has the character at at_
};

// Hugging Face looks up a short cluster as a whole. A rule that matches its beginning replaces the
// whole cluster: with a rule for just `E`, an E with an accent loses the accent. SentencePiece
// itself would apply the longest rule, and then continue after the text that the rule matched.
class precompiled_normalizer final : public normalizer {
 public:
  explicit precompiled_normalizer(charsmap rules) : rules_(std::move(rules)) {
    for (unsigned c = 0; c < plain_.size(); ++c) {
      const char one = static_cast<char>(c);
      plain_[c] = c < 0x80 && c != '\r' && !rules_.find_shortest({&one, 1});
    }
  }

  std::string_view normalize(std::string_view text, std::string& buffer,
                             growth_limit& limit) const override {
    limit.begin("Precompiled");
    buffer.clear();
    std::size_t copied = 0;  // bytes of `text` whose new form is in the buffer
    const auto replace = [&](std::size_t begin, std::size_t size, std::string_view by) {
      limit.expect(buffer.size() + (begin - copied) + by.size());
      buffer.append(text, copied, begin - copied).append(by);
      copied = begin + size;
    };
    bool changed = false;
    find_replaced(text, [&](std::size_t begin, std::size_t size, std::string_view by) {
      replace(begin, size, by);
      changed = true;
    });
    if (!changed) return text;
    replace(text.size(), 0, {});
    return buffer;
  }

  void align(aligned_text& text) const override {
    const std::string_view before = text.text();
    std::vector<changed_character> changes;
    std::size_t copied = 0;
    const auto copy_to = [&](std::size_t end) {
      while (copied < end) {
        const code_point point = code_point_at(before, copied);
        changes.push_back({point.value, 0});
        copied += point.size_bytes;
      }
    };
    find_replaced(before, [&](std::size_t begin, std::size_t size, std::string_view by) {
      copy_to(begin);
      append_changes(before.substr(begin, size), by, changes);
      copied = begin + size;
    });
    copy_to(before.size());
    text.transform(changes);
  }

 private:
  // Calls replace(begin, size, replacement) for each part of `text` that a rule replaces, in order.
  template <class Replace>
  void find_replaced(std::string_view text, const Replace& replace) const {
    cluster_reader clusters(text);
    for (;;) {
      clusters.skip_to(end_of_plain(text, clusters.at()));
      const std::size_t begin = clusters.at();
      if (begin == text.size()) break;
      const std::string_view cluster = clusters.next();
      if (cluster.size() < limit_bytes) {
        if (const auto rule = rules_.find_shortest(cluster)) {
          replace(begin, cluster.size(), rule->replacement);
          continue;
        }
      }
      for (std::size_t at = 0; at < cluster.size();) {
        const std::size_t size = code_point_at(cluster, at).size_bytes;
        if (const auto rule = rules_.find_shortest(cluster.substr(at, size))) {
          replace(begin + at, size, rule->replacement);
        }
        at += size;
      }
    }
  }

  // As in Hugging Face, the last characters are the new ones if there are more than before. If
  // there are fewer, the last character replaces the rest; at the start of a text there may be no
  // last character, and then the characters after it count as made from those before them.
  static void append_changes(std::string_view before, std::string_view after,
                             std::vector<changed_character>& changes) {
    std::size_t count_after = 0;
    for (std::size_t at = 0; at < after.size(); ++count_after) {
      const code_point point = code_point_at(after, at);
      changes.push_back({point.value, 0});
      at += point.size_bytes;
    }
    std::size_t count_before = 0;
    for (std::size_t at = 0; at < before.size(); ++count_before) {
      at += code_point_at(before, at).size_bytes;
    }
    if (count_after > count_before) {
      const std::size_t added = count_after - count_before;
      for (std::size_t i = changes.size() - added; i < changes.size(); ++i) changes[i].change = 1;
    } else if (count_after < count_before && !changes.empty()) {
      changes.back().change -= static_cast<std::int32_t>(count_before - count_after);
    }
  }

  // Clusters of this many bytes or more are looked up character by character.
  static constexpr std::size_t limit_bytes = 6;

  // Returns the end of the run that begins at `at` and consists of characters that never change,
  // regardless of their neighbors.
  std::size_t end_of_plain(std::string_view text, std::size_t at) const noexcept {
    std::size_t end = at;
    while (end < text.size() && plain_[static_cast<unsigned char>(text[end])]) ++end;
    // A mark may follow the last character of the run. Then both are looked up together, as one
    // cluster.
    const bool open =
        end != at && end < text.size() && static_cast<unsigned char>(text[end]) >= 0x80;
    return open ? end - 1 : end;
  }

  charsmap rules_;
  std::array<bool, 256> plain_{};  // ASCII characters without a rule
};

}  // namespace

normalizer_pointer make_precompiled(charsmap rules) {
  return std::make_unique<precompiled_normalizer>(std::move(rules));
}

}  // namespace millrace::tokenizer::detail
