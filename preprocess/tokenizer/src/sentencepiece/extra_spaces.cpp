// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/extra_spaces.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

namespace millrace::tokenizer::detail {
namespace {

constexpr std::string_view mark = "\xE2\x98\xAF";

// The characters for which Python's str.isspace() is true, in UTF-8.
constexpr std::array<std::string_view, 29> python_spaces = {
    "\t",           "\n",           "\v",           "\f",           "\r",
    "\x1C",         "\x1D",         "\x1E",         "\x1F",         " ",
    "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81",
    "\xE2\x80\x82", "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86",
    "\xE2\x80\x87", "\xE2\x80\x88", "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8",
    "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80"};

void strip_end(std::string& text) {
  std::string_view rest = text;
  for (bool again = true; again;) {
    const auto ends = [&](std::string_view space) { return rest.ends_with(space); };
    const auto* found = std::ranges::find_if(python_spaces, ends);
    again = found != python_spaces.end();
    if (again) rest.remove_suffix(found->size());
  }
  text.resize(rest.size());
}

class extra_space_encoder final : public section_encoder {
 public:
  explicit extra_space_encoder(std::unique_ptr<section_encoder> inner) : inner_(std::move(inner)) {}

  std::optional<encode_fault> encode(const section& part, id_buffer& ids) override {
    mark_extra_spaces(part.text, marked_);
    const std::size_t start = ids.size();
    std::string_view rest = marked_;
    while (!rest.empty()) {
      const std::size_t size = std::min(rest.find(mark), rest.size());
      if (size != 0) {
        stretch_ = rest.substr(0, size);
        stretch_ += mark;
        const std::size_t before = ids.size();
        if (auto fault = inner_->encode({stretch_, true}, ids)) return fault;
        if (ids.size() > before) ids.truncate(ids.size() - 1);
        limit().expect_ids(ids.size() - start);
      }
      rest.remove_prefix(std::min(size + mark.size(), rest.size()));
    }
    return std::nullopt;
  }

  std::optional<encode_fault> encode_with_offsets(const section&, id_buffer&,
                                                  std::vector<byte_span>&) override {
    return encode_fault{0,
                        "the places of tokens are not known when extra spaces are kept, because "
                        "SentencePiece then encodes a changed text; drop "
                        "--no-tokenizer-sentencepiece-ignore-extra-whitespaces"};
  }

  void limit_growth(growth_limit& limit) override {
    section_encoder::limit_growth(limit);
    inner_->limit_growth(limit);
  }

 private:
  std::unique_ptr<section_encoder> inner_;
  std::string marked_;
  std::string stretch_;
};

class extra_space_engine final : public section_engine {
 public:
  explicit extra_space_engine(std::unique_ptr<const section_engine> inner)
      : inner_(std::move(inner)) {}

  std::unique_ptr<section_encoder> make_encoder(std::size_t cache_bytes) const override {
    return std::make_unique<extra_space_encoder>(inner_->make_encoder(cache_bytes));
  }

 private:
  std::unique_ptr<const section_engine> inner_;
};

}  // namespace

void mark_extra_spaces(std::string_view text, std::string& marked) {
  const auto is_space = [&](std::size_t at) { return at < text.size() && text[at] == ' '; };
  // Python's `$` also matches before a line feed that ends the text.
  const auto is_end = [&](std::size_t at) {
    return at == text.size() || (at + 1 == text.size() && text[at] == '\n');
  };
  const auto put_mark = [&] {
    marked += ' ';
    marked += mark;
    marked += ' ';
  };
  marked.clear();
  for (std::size_t at = 0; at < text.size(); ++at) {
    // The regular expression matches the empty string between two spaces. After that, it may also
    // match the second space.
    if (at != 0 && is_space(at - 1) && is_space(at)) put_mark();
    if (is_space(at) && (at == 0 || is_end(at + 1))) {
      put_mark();
    } else {
      marked += text[at];
    }
  }
  strip_end(marked);
}

std::unique_ptr<const section_engine> make_extra_space_engine(
    std::unique_ptr<const section_engine> inner) {
  return std::make_unique<extra_space_engine>(std::move(inner));
}

}  // namespace millrace::tokenizer::detail
