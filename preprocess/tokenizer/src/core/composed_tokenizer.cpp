// SPDX-License-Identifier: Apache-2.0
#include "core/composed_tokenizer.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/free_memory.hpp>
#include <millrace/formats/detail/in_quotes.hpp>
#include <millrace/formats/detail/sha256.hpp>
#include <millrace/tokenizer/detail/special_ids.hpp>

#include "core/growth_limit.hpp"
#include "core/interfaces.hpp"
#include "core/offset_encoder.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

class composed_encoder final : public encoder {
 public:
  composed_encoder(const tokenizer_parts& parts, std::size_t cache_bytes)
      : parts_(&parts), engine_(parts.engine->make_encoder(cache_bytes)) {
    engine_->limit_growth(limit_);
  }

  std::optional<encode_fault> encode(std::string_view text, id_buffer& ids) override {
    return encode_part({text}, ids);
  }

  std::optional<encode_fault> encode_part(const text_part& part, id_buffer& ids) override {
    limit_ = growth_limit(part.text.size(), &interrupt_check_);
    ids_before_ = ids.size();
    if (part.is_first && part.with_template) ids.append(parts_->ids_before);
    auto fault = split(parts_->raw_tokens, {part.text, part.is_first, !part.is_first}, ids,
                       [&](section raw, id_buffer& out) { return encode_section(raw, out); });
    if (!fault && part.is_last && part.with_template) ids.append(parts_->ids_behind);
    return fault;
  }

  std::optional<encode_fault> encode_part_with_offsets(const text_part& part, id_buffer& ids,
                                                       std::vector<byte_span>& spans) override {
    const std::size_t ids_before = ids.size();
    const std::size_t spans_before = spans.size();
    limit_ = growth_limit(part.text.size(), &interrupt_check_);
    offset_encoder places(*parts_, *engine_, limit_, ids, spans);
    auto fault = places.encode(part);
    special_tokens_ += places.special_tokens_found();
    if (fault) {
      ids.truncate(ids_before);
      spans.resize(spans_before);
    }
    return fault;
  }

  std::int64_t special_tokens_found() const noexcept override { return special_tokens_; }

  void set_interrupt_check(std::function<void()> check) override {
    interrupt_check_ = std::move(check);
  }

 private:
  // Steps that cannot return a fault throw unencodable_text. This function turns the exception into
  // a fault.
  std::optional<encode_fault> encode_section(section raw, id_buffer& ids) {
    try {
      return encode_raw(raw, ids);
    } catch (const unencodable_text& e) {
      return encode_fault{0, e.what()};
    }
  }

  // The offset of a fault counts bytes from the start of the raw section, but in the normalized
  // text. If the normalizer changed the section, the place in the original text is not known.
  std::optional<encode_fault> encode_raw(section raw, id_buffer& ids) {
    section normalized = raw;
    if (parts_->normal) {
      normalized.text = parts_->normal->normalize(raw.text, normalized_, limit_);
    }
    auto fault = split(parts_->normalized_tokens, normalized, ids,
                       [&](section part, id_buffer& out) { return engine_->encode(part, out); });
    if (normalized_.capacity() > kept_bytes) formats::free_memory(normalized_);
    // Each section is within the limit, but all sections together may exceed it.
    limit_.expect_ids(ids.size() - ids_before_);
    return fault;
  }

  template <class Encode>
  std::optional<encode_fault> split(const added_token_finder& finder, const section& whole,
                                    id_buffer& ids, Encode encode) {
    const std::string_view text = whole.text;
    std::size_t begin = 0;   // end of the text encoded so far
    std::size_t search = 0;  // end of the last token, without white space that it consumed
    while (search < text.size() && !finder.empty()) {
      const auto found = finder.next(text, search, begin);
      if (!found) break;
      if (auto fault = encode_between(whole, begin, found->begin, ids, encode)) {
        return fault;
      }
      // The match of a white space token can now be empty: the previous token may have consumed all
      // of its white space.
      if (found->begin < found->end) {
        if (found->special) {
          if (parts_->special_tokens_are_faults) return special_token_fault(text, *found);
          ++special_tokens_;
        }
        ids.push_back(found->id);
      }
      begin = found->end;
      search = found->search_from;
    }
    return encode_between(whole, begin, text.size(), ids, encode);
  }

  static encode_fault special_token_fault(std::string_view text,
                                          const added_token_finder::match& found) {
    return {found.begin, "the special token " +
                             formats::in_quotes(text.substr(found.begin, found.end - found.begin)) +
                             " in the text"};
  }

  template <class Encode>
  std::optional<encode_fault> encode_between(const section& whole, std::size_t begin,
                                             std::size_t end, id_buffer& ids, Encode encode) {
    if (begin >= end) return std::nullopt;
    auto fault = encode(section{.text = whole.text.substr(begin, end - begin),
                                .at_start = whole.at_start && begin == 0,
                                .continues = whole.continues && begin == 0},
                        ids);
    if (fault) fault->offset_bytes += begin;
    return fault;
  }

  // If a huge text makes a buffer larger than this, the buffer is freed after the text.
  static constexpr std::size_t kept_bytes = std::size_t{1} << 22;

  const tokenizer_parts* parts_;
  std::unique_ptr<section_encoder> engine_;
  std::string normalized_;
  std::function<void()> interrupt_check_;
  growth_limit limit_{0};       // limit for the current part
  std::size_t ids_before_ = 0;  // number of ids in the output before the current part
  std::int64_t special_tokens_ = 0;
};

}  // namespace

std::size_t composed_tokenizer::last_cut(std::string_view text) const {
  for (std::size_t at = text.size(); at-- > 1;) {
    if (is_continuation(text[at])) continue;
    if (parts_.engine->may_cut(text, at) && parts_.raw_tokens.may_cut(text, at) &&
        parts_.normalized_tokens.may_cut(text, at) &&
        (!parts_.normal || parts_.normal->may_cut(text, at))) {
      return at;
    }
  }
  return 0;
}

std::unique_ptr<encoder> composed_tokenizer::make_encoder(std::size_t cache_bytes) const {
  return std::make_unique<composed_encoder>(parts_, cache_bytes);
}

namespace {

// A tokenizer that differs from another one in a part of its description.
class wrapped_tokenizer : public tokenizer {
 public:
  explicit wrapped_tokenizer(std::unique_ptr<tokenizer> inner) : inner_(std::move(inner)) {}

  const tokenizer& inner() const noexcept { return *inner_; }

  std::unique_ptr<encoder> make_encoder(std::size_t cache_bytes) const override {
    return inner_->make_encoder(cache_bytes);
  }
  std::int64_t vocab_size() const noexcept override { return inner_->vocab_size(); }
  std::optional<std::int32_t> eod() const noexcept override { return inner_->eod(); }
  std::string decode(std::span<const std::int64_t> ids) const override {
    return inner_->decode(ids);
  }
  std::optional<formats::token_texts> token_texts() const override { return inner_->token_texts(); }
  std::string fingerprint() const override { return inner_->fingerprint(); }
  std::vector<std::string> notes() const override { return inner_->notes(); }
  std::size_t last_cut(std::string_view text) const override { return inner_->last_cut(text); }
  bool parts_in_order() const noexcept override { return inner_->parts_in_order(); }

 private:
  std::unique_ptr<tokenizer> inner_;
};

class tokenizer_with_eod final : public wrapped_tokenizer {
 public:
  tokenizer_with_eod(std::unique_ptr<tokenizer> inner, std::int32_t eod)
      : wrapped_tokenizer(std::move(inner)), eod_(eod) {}

  std::optional<std::int32_t> eod() const noexcept override { return eod_; }
  std::string fingerprint() const override {
    return formats::sha256_hex(inner().fingerprint() + "\neod " + std::to_string(eod_) + "\n");
  }

 private:
  std::int32_t eod_;
};

class tokenizer_with_note final : public wrapped_tokenizer {
 public:
  tokenizer_with_note(std::unique_ptr<tokenizer> inner, std::string note)
      : wrapped_tokenizer(std::move(inner)), note_(std::move(note)) {}

  std::vector<std::string> notes() const override {
    std::vector<std::string> all = inner().notes();
    all.push_back(note_);
    return all;
  }

 private:
  std::string note_;
};

// Decodes every id, because vocabularies have no look-up by text. This takes a few milliseconds.
std::vector<std::int32_t> ids_with_text(const tokenizer& vocabulary, std::string_view text) {
  std::vector<std::int32_t> found;
  for (std::int64_t id = 0; id < vocabulary.vocab_size(); ++id) {
    if (vocabulary.decode({&id, 1}) == text) found.push_back(static_cast<std::int32_t>(id));
  }
  return found;
}

std::int32_t id_of(const tokenizer& vocabulary, std::string_view content) {
  const std::vector<std::int32_t> found = ids_with_text(vocabulary, content);
  if (found.empty()) {
    throw config_error("--eod-token " + formats::in_quotes(content) +
                       " is not the text of any token");
  }
  if (found.size() > 1) {
    throw config_error("--eod-token " + formats::in_quotes(content) +
                       " is the text of two tokens, " + std::to_string(found[0]) + " and " +
                       std::to_string(found[1]));
  }
  return found.front();
}

}  // namespace

const composed_tokenizer* composed_of(const tokenizer& made) noexcept {
  const auto* wrapped = dynamic_cast<const wrapped_tokenizer*>(&made);
  return wrapped != nullptr ? composed_of(wrapped->inner())
                            : dynamic_cast<const composed_tokenizer*>(&made);
}

std::unique_ptr<tokenizer> with_note(std::unique_ptr<tokenizer> inner, std::string note) {
  return std::make_unique<tokenizer_with_note>(std::move(inner), std::move(note));
}

std::unique_ptr<tokenizer> with_eod(std::unique_ptr<tokenizer> inner, std::string_view content) {
  const std::int32_t eod = id_of(*inner, content);
  return with_eod(std::move(inner), eod);
}

std::unique_ptr<tokenizer> with_eod(std::unique_ptr<tokenizer> inner, std::int32_t eod) {
  return std::make_unique<tokenizer_with_eod>(std::move(inner), eod);
}

}  // namespace millrace::tokenizer::detail

namespace millrace::tokenizer {

std::optional<encode_fault> encoder::encode_part_with_offsets(const text_part&, id_buffer&,
                                                              std::vector<byte_span>&) {
  return encode_fault{0, std::string(detail::section_encoder::unknown_places)};
}

std::vector<std::int32_t> special_ids(const tokenizer& of) {
  std::set<std::int32_t> ids;
  if (const auto eod = of.eod()) ids.insert(*eod);
  if (const auto* composed = detail::composed_of(of)) {
    const detail::tokenizer_parts& parts = composed->parts();
    ids.insert(parts.ids_before.begin(), parts.ids_before.end());
    ids.insert(parts.ids_behind.begin(), parts.ids_behind.end());
    for (const auto* finder : {&parts.raw_tokens, &parts.normalized_tokens}) {
      for (const detail::added_token& token : finder->tokens()) {
        if (token.special && !token.stays_text) ids.insert(token.id);
      }
    }
  }
  return {ids.begin(), ids.end()};
}

std::vector<std::int32_t> ids_of_token(const tokenizer& of, std::string_view token) {
  std::set<std::int32_t> ids;
  if (const auto* composed = detail::composed_of(of)) {
    const detail::tokenizer_parts& parts = composed->parts();
    for (const auto* finder : {&parts.raw_tokens, &parts.normalized_tokens}) {
      for (const detail::added_token& each : finder->tokens()) {
        if (each.content == token) ids.insert(each.id);
      }
    }
  }
  if (!ids.empty()) return {ids.begin(), ids.end()};
  constexpr std::string_view space = "\u2581";
  std::string text(token);
  for (std::size_t at = 0; (at = text.find(space, at)) != text.npos;) {
    text.replace(at, space.size(), 1, ' ');
  }
  // The decoder drops the space at the start of a text.
  if (text.size() != token.size() && text.starts_with(' ')) text.erase(0, 1);
  return detail::ids_with_text(of, text);
}

}  // namespace millrace::tokenizer
