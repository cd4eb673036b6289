// SPDX-License-Identifier: Apache-2.0
#include "pre_tokenize/stages.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "split/r50k_matcher.hpp"
#include "text/byte_alphabet.hpp"
#include "unicode/code_point_set.hpp"
#include "unicode/unicode_classes.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

bool is_space(std::uint32_t point) noexcept {
  return class_of(point) == char_class::space;
}

// Writes matches and the text between them to `out`. Each character for which `belongs` returns
// true is a match. The text between two matches is one stretch.
template <class Belongs>
void match_characters(std::string_view text, Belongs belongs, std::vector<stretch>& out) {
  out.clear();
  std::size_t covered = 0;
  for (std::size_t at = 0; at < text.size();) {
    const code_point point = code_point_at(text, at);
    const std::size_t end = at + point.size_bytes;
    if (belongs(point.value)) {
      if (covered < at) out.push_back({covered, at, false});
      out.push_back({at, end, true});
      covered = end;
    }
    at = end;
  }
  if (covered < text.size()) out.push_back({covered, text.size(), false});
}

template <class Belongs>
class character_stage final : public cutting_stage<character_stage<Belongs>> {
 public:
  character_stage(Belongs belongs, split_behavior behavior)
      : belongs_(std::move(belongs)), behavior_(behavior) {}

  template <class Out>
  void cut_to(const section& piece, stage_scratch& scratch, Out& out) const {
    match_characters(piece.text, belongs_, scratch.stretches);
    append_pieces(piece.text, scratch.stretches, behavior_, out);
  }

 private:
  Belongs belongs_;
  split_behavior behavior_;
};

template <class Belongs>
stage_pointer of_characters(Belongs belongs, split_behavior behavior) {
  return std::make_unique<character_stage<Belongs>>(std::move(belongs), behavior);
}

auto membership(reference_set name) {
  return [set = code_point_set(name)](std::uint32_t point) { return set.contains(point); };
}

class bert_stage final : public cutting_stage<bert_stage> {
 public:
  template <class Out>
  void cut_to(const section& piece, stage_scratch& scratch, Out& out) const {
    const auto ends_word = [this](std::uint32_t point) {
      return is_space(point) || punctuation_.contains(point);
    };
    match_characters(piece.text, ends_word, scratch.stretches);
    for (const stretch& part : scratch.stretches) {
      if (part.matches && is_space(code_point_at(piece.text, part.begin).value)) continue;
      out.add(piece.text.substr(part.begin, part.end - part.begin));
    }
  }

 private:
  code_point_set punctuation_{reference_set::punctuation};
};

class byte_level_stage final : public piece_stage {
 public:
  byte_level_stage(bool add_prefix_space, bool use_regex)
      : add_prefix_space_(add_prefix_space), use_regex_(use_regex) {}

  void cut(const section& piece, stage_scratch& scratch, piece_list& out) const override {
    std::string_view text = piece.text;
    if (add_prefix_space_ && text.front() != ' ') {
      scratch.text.assign(1, ' ').append(text);
      text = scratch.text;
    }
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = use_regex_ ? r50k_matcher<false>::end(text, begin) : text.size();
      for (const char byte : text.substr(begin, end - begin)) {
        append_small_code_point(out.text,
                                gpt2_alphabet.character[static_cast<unsigned char>(byte)]);
      }
      out.close();
      begin = end;
    }
  }

  void cut_aligned(const aligned_text& piece, bool, stage_scratch&,
                   aligned_pieces& out) const override {
    aligned_text text = piece;
    if (add_prefix_space_ && text.text().front() != ' ') text.prepend(" ");
    aligned_text spelled;
    for (std::size_t begin = 0; begin < text.text().size();) {
      const std::size_t end =
          use_regex_ ? r50k_matcher<false>::end(text.text(), begin) : text.text().size();
      spelled.clear();
      spelled.append(text, begin, end);
      spelled.spell_bytes();
      out.add(spelled, 0, spelled.text().size());
      begin = end;
    }
  }

 private:
  bool add_prefix_space_;
  bool use_regex_;
};

class metaspace_stage final : public piece_stage {
 public:
  metaspace_stage(std::uint32_t replacement, prepend_scheme scheme, bool split)
      : scheme_(scheme), split_(split) {
    append_code_point(replacement_, replacement);
  }

  bool asks_for_start() const noexcept override { return scheme_ == prepend_scheme::first; }

  void cut(const section& piece, stage_scratch& scratch, piece_list& out) const override {
    std::string& text = scratch.text;
    text.clear();
    const bool may_prepend =
        scheme_ == prepend_scheme::always || (scheme_ == prepend_scheme::first && piece.at_start);
    if (may_prepend && piece.text.front() != ' ' && !piece.text.starts_with(replacement_)) {
      text += replacement_;
    }
    for (const char byte : piece.text) {
      if (byte == ' ') {
        text += replacement_;
      } else {
        text += byte;
      }
    }
    if (!split_) return out.add(text);
    const std::string_view all = text;
    for (std::size_t begin = 0; begin < all.size();) {
      const std::size_t end = std::min(all.find(replacement_, begin + 1), all.size());
      out.add(all.substr(begin, end - begin));
      begin = end;
    }
  }

  void cut_aligned(const aligned_text& piece, bool at_start, stage_scratch&,
                   aligned_pieces& out) const override {
    aligned_text text = piece;
    aligned_text::replacement spaces(text);
    const std::string_view before = piece.text();
    for (std::size_t at = before.find(' '); at != before.npos; at = before.find(' ', at + 1)) {
      spaces.replace(at, at + 1, replacement_);
    }
    spaces.finish();
    const bool may_prepend =
        scheme_ == prepend_scheme::always || (scheme_ == prepend_scheme::first && at_start);
    if (may_prepend && !text.text().starts_with(replacement_)) text.prepend(replacement_);
    const std::string_view all = text.text();
    for (std::size_t begin = 0; begin < all.size();) {
      const std::size_t end =
          split_ ? std::min(all.find(replacement_, begin + 1), all.size()) : all.size();
      out.add(text, begin, end);
      begin = end;
    }
  }

 private:
  std::string replacement_;
  prepend_scheme scheme_;
  bool split_;
};

class whitespace_stage final : public cutting_stage<whitespace_stage> {
 public:
  template <class Out>
  void cut_to(const section& piece, stage_scratch&, Out& out) const {
    const std::string_view text = piece.text;
    std::size_t begin = 0;
    kind_of_character last = kind_of_character::space;
    for (std::size_t at = 0; at < text.size();) {
      const code_point point = code_point_at(text, at);
      const kind_of_character kind = kind_of(point.value);
      if (kind != last) {
        if (last != kind_of_character::space) out.add(text.substr(begin, at - begin));
        begin = at;
        last = kind;
      }
      at += point.size_bytes;
    }
    if (last != kind_of_character::space) out.add(text.substr(begin));
  }

 private:
  enum class kind_of_character : std::uint8_t { space, word, other };
  kind_of_character kind_of(std::uint32_t point) const noexcept {
    if (is_space(point)) return kind_of_character::space;
    return words_.contains(point) ? kind_of_character::word : kind_of_character::other;
  }

  code_point_set words_{reference_set::rust_word};
};

class split_stage final : public cutting_stage<split_stage> {
 public:
  split_stage(std::string pattern, split_behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  template <class Out>
  void cut_to(const section& piece, stage_scratch& scratch, Out& out) const {
    std::vector<stretch>& parts = scratch.stretches;
    parts.clear();
    std::size_t covered = 0;
    while (covered < piece.text.size()) {
      const std::size_t found = piece.text.find(pattern_, covered);
      const std::size_t begin = std::min(found, piece.text.size());
      if (covered < begin) parts.push_back({covered, begin, invert_});
      if (found == std::string_view::npos) break;
      covered = begin + pattern_.size();
      parts.push_back({begin, covered, !invert_});
    }
    append_pieces(piece.text, parts, behavior_, out);
  }

 private:
  std::string pattern_;
  split_behavior behavior_;
  bool invert_;
};

class scripts_stage final : public cutting_stage<scripts_stage> {
 public:
  template <class Out>
  void cut_to(const section& piece, stage_scratch&, Out& out) const {
    const std::string_view text = piece.text;
    std::size_t begin = 0;
    std::uint32_t last = any_script;
    for (std::size_t at = 0; at < text.size();) {
      const code_point point = code_point_at(text, at);
      const std::uint32_t script = script_of(point.value);
      if (script != any_script && script != last) {
        // Like Hugging Face, drop the text before the first character that has a script.
        if (last != any_script) out.add(text.substr(begin, at - begin));
        begin = at;
        last = script;
      }
      at += point.size_bytes;
    }
    if (last != any_script) out.add(text.substr(begin));
  }

 private:
  static constexpr std::uint32_t any_script = 0;
  static std::uint32_t script_of(std::uint32_t point) noexcept {
    const std::uint32_t* above =
        std::upper_bound(script_runs, script_runs + script_runs_size, point << 8 | 0xFF);
    return above[-1] & 0xFF;
  }
};

class fixed_length_stage final : public cutting_stage<fixed_length_stage> {
 public:
  explicit fixed_length_stage(std::size_t length) : length_(length) {}

  template <class Out>
  void cut_to(const section& piece, stage_scratch&, Out& out) const {
    std::size_t begin = 0;
    std::size_t count = 0;
    for (std::size_t at = 0; at < piece.text.size();) {
      at += code_point_at(piece.text, at).size_bytes;
      if (++count < length_ && at < piece.text.size()) continue;
      out.add(piece.text.substr(begin, at - begin));
      begin = at;
      count = 0;
    }
  }

 private:
  std::size_t length_;
};

}  // namespace

stage_pointer make_bert_stage() {
  return std::make_unique<bert_stage>();
}
stage_pointer make_byte_level_stage(bool add_prefix_space, bool use_regex) {
  return std::make_unique<byte_level_stage>(add_prefix_space, use_regex);
}
stage_pointer make_delimiter_stage(std::uint32_t delimiter) {
  return of_characters([delimiter](std::uint32_t point) { return point == delimiter; },
                       split_behavior::removed);
}
stage_pointer make_metaspace_stage(std::uint32_t replacement, prepend_scheme scheme, bool split) {
  return std::make_unique<metaspace_stage>(replacement, scheme, split);
}
stage_pointer make_whitespace_stage() {
  return std::make_unique<whitespace_stage>();
}
stage_pointer make_whitespace_split_stage() {
  return of_characters(is_space, split_behavior::removed);
}
stage_pointer make_split_stage(std::string pattern, split_behavior behavior, bool invert) {
  return std::make_unique<split_stage>(std::move(pattern), behavior, invert);
}
stage_pointer make_punctuation_stage(split_behavior behavior) {
  return of_characters(membership(reference_set::punctuation), behavior);
}
stage_pointer make_digits_stage(bool individual) {
  return of_characters(membership(reference_set::numeric),
                       individual ? split_behavior::isolated : split_behavior::contiguous);
}
stage_pointer make_scripts_stage() {
  return std::make_unique<scripts_stage>();
}
stage_pointer make_fixed_length_stage(std::size_t length) {
  return std::make_unique<fixed_length_stage>(length);
}

}  // namespace millrace::tokenizer::detail
