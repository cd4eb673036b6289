// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/byte_level.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/formats/detail/free_memory.hpp>

#include "bpe/byte_bpe_engine.hpp"
#include "split/splitters.hpp"
#include "text/byte_alphabet.hpp"

namespace millrace::tokenizer::detail {
namespace {

bool occurs_in_utf8(unsigned byte) {
  return byte != 0xC0 && byte != 0xC1 && byte < 0xF5;
}

std::int32_t id_of_byte(const model_file& model, unsigned byte) {
  return model.index.find(spelling_of(std::string(1, static_cast<char>(byte))));
}

std::optional<pattern> pattern_of(const byte_level_plan& plan) {
  if (plan.steps.empty()) {
    if (plan.byte_level_regex) return pattern::r50k;
    return std::nullopt;
  }
  if (plan.add_prefix_space) return std::nullopt;
  if (plan.byte_level_regex) {
    const bool digits = plan.steps.size() == 1 &&
                        plan.steps[0].what == byte_level_plan::step::kind::individual_digits;
    return digits ? std::optional(pattern::digits_r50k) : std::nullopt;
  }
  std::span<const byte_level_plan::step> steps(plan.steps);
  const bool digits = steps.back().what == byte_level_plan::step::kind::individual_digits;
  if (digits) steps = steps.first(steps.size() - 1);
  std::vector<std::string_view> regexes;
  for (const byte_level_plan::step& step : steps) {
    if (step.what != byte_level_plan::step::kind::regex) return std::nullopt;
    regexes.push_back(step.regex);
  }
  return digits ? pattern_of_regexes_and_digits(regexes) : pattern_of_regexes(regexes);
}

byte_bpe_vocabulary take_vocabulary(model_file& model) {
  byte_bpe_vocabulary v;
  v.whole_words_first = model.whole_words_first;
  for (unsigned byte = 0; byte < v.byte_ids.size(); ++byte) {
    v.byte_ids[byte] = id_of_byte(model, byte);
  }
  model.index = {};
  v.merges = std::move(model.merges);
  // A token that is neither a byte nor the result of a merge can match only a whole word.
  std::vector<bool> comes_up;
  const auto note = [&](std::int32_t id) {
    const auto at = static_cast<std::size_t>(id);
    if (at >= comes_up.size()) comes_up.resize(at + at / 2 + 64);
    comes_up[at] = true;
  };
  for (const merge_rule& rule : v.merges) note(rule.result);
  for (const std::int32_t id : v.byte_ids) {
    if (id >= 0) note(id);
  }
  for (const listed_token& token : model.tokens) {
    const auto at = static_cast<std::size_t>(token.id);
    if (!model.whole_words_first && (at >= comes_up.size() || !comes_up[at])) continue;
    const auto bytes = bytes_of(token.text);
    if (bytes && !bytes->empty()) v.tokens.add(token.id, *bytes);
  }
  return v;
}

// Adds a space before each section that does not begin with one.
class prefix_space_engine final : public section_engine {
 public:
  explicit prefix_space_engine(std::unique_ptr<const section_engine> engine)
      : engine_(std::move(engine)) {}

  std::unique_ptr<section_encoder> make_encoder(std::size_t cache_bytes) const override {
    return std::make_unique<encoder>(engine_->make_encoder(cache_bytes));
  }
  bool may_cut(std::string_view text, std::size_t at) const override {
    return engine_->may_cut(text, at);
  }
  table_form form() const noexcept override { return table_form::spaced_byte_bpe; }
  void write(table_writer& out) const override { engine_->write(out); }

 private:
  class encoder final : public section_encoder {
   public:
    explicit encoder(std::unique_ptr<section_encoder> inner) : inner_(std::move(inner)) {}

    std::optional<encode_fault> encode(const section& part, id_buffer& ids) override {
      if (part.continues || part.text.starts_with(' ')) return inner_->encode(part, ids);
      text_.assign(1, ' ').append(part.text);
      auto fault = inner_->encode({text_, part.at_start}, ids);
      if (fault && fault->offset_bytes > 0) --fault->offset_bytes;
      if (text_.capacity() > kept_bytes) formats::free_memory(text_);
      return fault;
    }

    // As in Hugging Face, the added space counts as made from the first character.
    std::optional<encode_fault> encode_with_offsets(const section& part, id_buffer& ids,
                                                    std::vector<byte_span>& spans) override {
      if (part.continues || part.text.starts_with(' ')) {
        return inner_->encode_with_offsets(part, ids, spans);
      }
      const std::size_t before = spans.size();
      text_.assign(1, ' ').append(part.text);
      if (auto fault = inner_->encode_with_offsets({text_, part.at_start}, ids, spans)) {
        if (fault->offset_bytes > 0) --fault->offset_bytes;
        return fault;
      }
      const std::size_t first = code_point_at(part.text, 0).size_bytes;
      for (byte_span& span : std::span(spans).subspan(before)) {
        span.begin -= span.begin == 0 ? 0 : 1;
        span.end = span.end == 1 ? first : span.end - 1;
      }
      if (text_.capacity() > kept_bytes) formats::free_memory(text_);
      return std::nullopt;
    }

   private:
    // If a huge text needs a larger buffer than this, encode() frees the buffer afterwards.
    // Ordinary texts need less.
    static constexpr std::size_t kept_bytes = std::size_t{1} << 22;

    std::unique_ptr<section_encoder> inner_;
    std::string text_;
  };

  std::unique_ptr<const section_engine> engine_;
};

}  // namespace

std::optional<unsigned> missing_byte(const model_file& model) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (occurs_in_utf8(byte) && id_of_byte(model, byte) == token_index::none) return byte;
  }
  return std::nullopt;
}

std::unique_ptr<const section_engine> make_byte_level_engine(model_file& model,
                                                             const byte_level_plan& plan) {
  if (model.kind != model_kind::bpe || !model.prefix.empty() || !model.suffix.empty() ||
      missing_byte(model)) {
    return nullptr;
  }
  const auto known = pattern_of(plan);
  if (!known) return nullptr;
  auto engine = make_byte_bpe_engine(take_vocabulary(model), *known);
  return plan.add_prefix_space ? with_prefix_space(std::move(engine)) : std::move(engine);
}

std::unique_ptr<const section_engine> with_prefix_space(
    std::unique_ptr<const section_engine> engine) {
  return std::make_unique<prefix_space_engine>(std::move(engine));
}

namespace {

using step = byte_level_plan::step;

void flatten(const json_component& json, std::vector<json_component>& parts) {
  if (json.type() != "Sequence") {
    parts.push_back(json);
    return;
  }
  for (const json_component& part : json.components("pretokenizers")) flatten(part, parts);
}

std::optional<step> step_of(const json_component& json) {
  if (json.type() == "Digits") {
    return step{
        json.flag("individual_digits") ? step::kind::individual_digits : step::kind::runs_of_digits,
        {}};
  }
  if (json.type() != "Split") return std::nullopt;
  const auto pattern = json.pattern_of("pattern");
  // `invert` does not change which pieces are isolated, so check only that it is a flag.
  if (!pattern.is_regex || json.text("behavior") != "Isolated") return std::nullopt;
  (void)json.flag("invert");
  return step{step::kind::regex, std::string(pattern.text)};
}

}  // namespace

std::optional<byte_level_plan> byte_level_plan_of(const json_node& pre_tokenizer,
                                                  const std::string& path) {
  if (pre_tokenizer.is_null()) return std::nullopt;
  std::vector<json_component> parts;
  flatten(json_component(pre_tokenizer, path), parts);
  if (parts.empty() || parts.back().type() != "ByteLevel") return std::nullopt;
  byte_level_plan plan;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    auto step = step_of(parts[i]);
    if (!step) return std::nullopt;
    plan.steps.push_back(std::move(*step));
  }
  plan.add_prefix_space = parts.back().flag("add_prefix_space");
  plan.byte_level_regex = parts.back().flag_or("use_regex", true);
  return plan;
}

}  // namespace millrace::tokenizer::detail
