// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/tokenizer_file.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>

#include "bpe/pretoken_table.hpp"
#include "hugging_face/byte_level.hpp"
#include "hugging_face/component_traits.hpp"
#include "hugging_face/decoders.hpp"
#include "hugging_face/read_components.hpp"
#include "hugging_face/read_model.hpp"
#include "models/character_bpe.hpp"
#include "models/engines.hpp"
#include "models/word_models.hpp"
#include "regex/pcre2_pattern.hpp"

namespace millrace::tokenizer::detail {
namespace {

void append_special(const json_node& tokens, const json_node& piece,
                    std::vector<std::int32_t>& ids) {
  const json_node name = piece.at("id");
  const std::string_view key = name.string("the id of a special token");
  const auto token = tokens.find(key);
  if (!token) name.fail("the special token " + formats::in_quotes(key) + " is not listed");
  const json_node list = token->at("ids");
  std::size_t index = 0;
  for (const simdjson::dom::element id : list.array("ids")) {
    const json_node value(list, id, index++);
    ids.push_back(static_cast<std::int32_t>(value.integer("an id", max_token_id)));
  }
}

text_template read_template(const json_node& processor) {
  const json_node single = processor.at("single");
  const json_node tokens = processor.at("special_tokens");
  text_template result;
  bool text_seen = false;
  std::size_t index = 0;
  for (const simdjson::dom::element element : single.array("single")) {
    const json_node piece(single, element, index++);
    if (const auto special = piece.find("SpecialToken")) {
      append_special(tokens, *special, text_seen ? result.behind : result.before);
    } else if (const auto text = piece.find("Sequence")) {
      const json_node name = text->at("id");
      if (text_seen || name.string("the id of a sequence") != "A") {
        piece.fail("the template has more than the one text");
      }
      text_seen = true;
    } else {
      piece.fail("a piece of the template is neither a SpecialToken nor a Sequence");
    }
  }
  if (!text_seen) single.fail("the template has no place for the text");
  return result;
}

// Returns the id of an entry of the form [token, id].
std::int32_t id_of_pair(const json_node& processor, const char* key) {
  const json_node pair = processor.at(key);
  std::int32_t result = -1;
  std::size_t index = 0;
  for (const simdjson::dom::element element : pair.array(key)) {
    const json_node value(pair, element, index);
    if (index == 1) result = static_cast<std::int32_t>(value.integer("an id", max_token_id));
    ++index;
  }
  if (index != 2) pair.fail(std::string(key) + " is not a token and its id");
  return result;
}

// Files may lack the flags, which Hugging Face then takes to be true.
std::vector<offset_trim> trims_of(const json_node& processor) {
  const auto flag = [&](const char* key) {
    const auto value = processor.find(key);
    return !value || value->boolean(key);
  };
  if (!flag("trim_offsets")) return {};
  return {{.add_prefix_space = flag("add_prefix_space")}};
}

bool is_empty(const text_template& t) {
  return t.before.empty() && t.behind.empty();
}

}  // namespace

text_template read_post_processor(const json_node& processor) {
  const json_node type = processor.at("type");
  const std::string_view name = type.string("the type of the post-processor");
  if (name == "ByteLevel") return {{}, {}, trims_of(processor)};
  if (name == "TemplateProcessing") return read_template(processor);
  if (name == "BertProcessing") {
    return {{id_of_pair(processor, "cls")}, {id_of_pair(processor, "sep")}, {}, true};
  }
  if (name == "RobertaProcessing") {
    return {
        {id_of_pair(processor, "cls")}, {id_of_pair(processor, "sep")}, trims_of(processor), true};
  }
  if (name != "Sequence")
    type.fail("the post-processor " + formats::in_quotes(name) + " is not known");
  text_template result;
  const json_node list = processor.at("processors");
  std::size_t index = 0;
  for (const simdjson::dom::element element : list.array("processors")) {
    const json_node each(list, element, index++);
    text_template next = read_post_processor(each);
    for (offset_trim trim : next.trims) {
      trim.follows_template = trim.follows_template || result.is_one_list;
      result.trims.push_back(trim);
    }
    if (is_empty(next)) continue;
    if (!is_empty(result)) each.fail("a second post-processor adds special tokens");
    result.before = std::move(next.before);
    result.behind = std::move(next.behind);
    result.is_one_list = next.is_one_list;
  }
  return result;
}

namespace {

constexpr std::size_t longest_noted_regex = 200;

const json_node& checked(const json_node& root) {
  std::vector<std::string_view> keys;
  for (const auto [key, value] : root.object("the file")) {
    if (std::ranges::find(keys, key) != keys.end()) {
      json_node(root, value, keys.size())
          .fail("the entry " + formats::in_quotes(key) + " occurs twice");
    }
    keys.push_back(key);
  }
  if (const auto version = root.find("version")) {
    const std::string_view name = version->string("version");
    if (name != "1.0") version->fail("version " + formats::in_quotes(name) + ", expected '1.0'");
  }
  return root;
}

// Adds a note for each regular expression in `component`, because PCRE2 has to match it.
void note_regexes(simdjson::dom::element component, std::vector<std::string>& notes) {
  any_component(component, [&](const simdjson::dom::object& each) {
    std::string_view regex;
    if (each["pattern"]["Regex"].get(regex) == simdjson::SUCCESS) {
      notes.push_back("the regular expression " + formats::in_quotes(regex, longest_noted_regex) +
                      " is matched by PCRE2 " + pcre2_version() +
                      ", which is slower than the built-in code for well-known expressions");
    }
    return false;
  });
}

model_file model_in(const json_node& root) {
  const json_node model = root.at("model");
  return read_model(model);
}

}  // namespace

tokenizer_file::tokenizer_file(std::string_view text)
    : document_(text), root_(document_), model_(model_in(checked(root_))), added_(model_) {
  if (const auto normalizer = root_.find("normalizer")) {
    normal_ = read_normalizer(*normalizer);
  }
  if (const auto processor = root_.find("post_processor"))
    around_ = read_post_processor(*processor);
  if (const auto tokens = root_.find("added_tokens")) {
    const std::string problem = added_.add(read_added_tokens(*tokens));
    if (!problem.empty()) tokens->fail(problem);
  }
}

std::unique_ptr<const word_model> tokenizer_file::make_word_model() {
  const model_file& m = model_;
  model_.index = {};
  if (m.kind == model_kind::unigram) return make_unigram(m.pieces, m.unknown_id, m.byte_fallback);
  auto tokens = std::make_unique<const vocabulary>(m.tokens);
  if (m.kind == model_kind::word_level) return make_word_level(std::move(tokens), m.unknown_id);
  if (m.kind == model_kind::word_piece) {
    return make_word_piece(std::move(tokens),
                           {std::string(m.prefix), m.max_characters_per_word, m.unknown_id});
  }
  character_bpe_options options;
  options.prefix = std::string(m.prefix);
  options.suffix = std::string(m.suffix);
  options.unknown = m.unknown_id;
  options.unknown_is_fault = m.unknown && !m.unknown_id;
  options.fuse_unknown = m.fuse_unknown;
  options.byte_fallback = m.byte_fallback;
  options.whole_words_first = m.whole_words_first;
  return make_character_bpe(std::move(tokens), m.merges, std::move(options));
}

void tokenizer_file::check_start() const {
  const auto words = root_.find("pre_tokenizer");
  const auto normalizer = root_.find("normalizer");
  if (words && normalizer && may_split_the_start(normalizer->element(), words->element())) {
    words->fail(
        "prepend_scheme 'first' is not supported with this normalizer: an added token might begin "
        "inside the replacement of one character");
  }
}

std::unique_ptr<const section_engine> tokenizer_file::make_engine(std::vector<std::string>& notes) {
  const auto words = root_.find("pre_tokenizer");
  if (!words) return make_piecewise_engine(nullptr, make_word_model());
  const auto normalizer = root_.find("normalizer");
  if (normalizer && may_move_the_start(normalizer->element(), words->element())) {
    words->fail(
        "prepend_scheme 'first' is not supported with a normalizer that removes characters or "
        "replaces several at once, because the result depends on their positions");
  }
  if (model_.kind == model_kind::bpe) {
    if (const auto plan = byte_level_plan_of(*words)) {
      if (auto engine = make_byte_level_engine(model_, *plan)) return engine;
      const auto missing = missing_byte(model_);
      if (missing && !model_.unknown && !model_.byte_fallback) {
        const json_node model = root_.at("model");
        model.fail("the vocabulary has no token for the single byte " + std::to_string(*missing));
      }
    }
  }
  auto pieces = read_pre_tokenizer(*words);
  note_regexes(words->element(), notes);
  return make_piecewise_engine(std::move(pieces), make_word_model());
}

// Creates an engine for raw text, and moves the normalizer into it. Returns null if the components
// cannot process each unit of a text independently.
std::unique_ptr<const section_engine> tokenizer_file::make_engine_of_raw_text() {
  const auto units = raw_units_of(root_);
  if (!units) return nullptr;
  static_assert(max_token_id <= word_ids<4>::max_id);
  unit_parts parts;
  parts.units = make_splitter(*units);
  parts.words = read_pre_tokenizer(root_.at("pre_tokenizer"));
  parts.model = make_word_model();
  parts.normal = std::move(normal_);
  return make_unit_engine(std::move(parts));
}

std::unique_ptr<const detokenizer> tokenizer_file::make_detokenizer(
    std::vector<std::string>& notes) const {
  token_table table;
  std::vector<bool> is_added(static_cast<std::size_t>(added_.end_id()));
  for (const added_token& token : added_.tokens()) {
    table.add(token.id, added_.written(token, normal_.get()));
    is_added[static_cast<std::size_t>(token.id)] = true;
  }
  for (const listed_token& token : model_.tokens) {
    if (!is_added[static_cast<std::size_t>(token.id)]) table.add(token.id, token.text);
  }
  const auto decoder = root_.find("decoder");
  return make_chain_detokenizer(std::move(table),
                                read_decoder(decoder ? &*decoder : nullptr, notes));
}

void tokenizer_file::check_template() const {
  for (const auto* ids : {&around_.before, &around_.behind}) {
    for (const std::int32_t id : *ids) {
      if (id < added_.end_id()) continue;
      throw config_error("the post-processor adds the id " + std::to_string(id) +
                         ", but no token has this id");
    }
  }
}

void tokenizer_file::add_special_tokens(const std::vector<std::string>& contents) {
  std::vector<added_token> tokens;
  for (const std::string& content : contents) {
    if (content.empty()) throw config_error("--tokenizer-special-tokens: a token is empty");
    tokens.emplace_back().content = content;
  }
  const std::string problem = added_.add(tokens);
  if (!problem.empty()) throw config_error("--tokenizer-special-tokens: " + problem);
}

tokenizer_parts tokenizer_file::make_parts(const hugging_face_options& options) {
  tokenizer_parts parts;
  auto finders = make_finders(added_.tokens(), normal_.get(),
                              options.in_text == special_tokens_in_text::encode_as_text);
  parts.raw_tokens = std::move(finders.raw);
  parts.normalized_tokens = std::move(finders.normalized);
  parts.special_tokens_are_faults = options.in_text == special_tokens_in_text::error;
  if (const auto normalizer = root_.find("normalizer")) {
    note_regexes(normalizer->element(), parts.notes);
    parts.normalizer_json = simdjson::minify(normalizer->element());
  }
  parts.decoder = make_detokenizer(parts.notes);
  parts.has_decoder_steps = true;
  if (const auto decoder = root_.find("decoder")) {
    parts.decoder_json = simdjson::minify(decoder->element());
  }
  if (parts.normalized_tokens.empty()) {
    parts.engine = make_engine_of_raw_text();
  } else {
    check_start();
  }
  if (!parts.engine) parts.engine = make_engine(parts.notes);
  parts.trims = around_.trims;
  if (!parts.trims.empty()) {
    if (model_.kind == model_kind::unigram) {
      parts.offsets_fault =
          "the places of tokens are not known with a Unigram model and a post-processor with "
          "trim_offsets";
    }
    for (const listed_token& token : model_.tokens) {
      const auto id = static_cast<std::size_t>(token.id);
      if (id >= parts.token_spaces.size()) parts.token_spaces.resize(id + id / 2 + 64);
      parts.token_spaces[id] = spaces_of(token.text);
    }
  }
  if (options.include_special_tokens) {
    check_template();
    parts.ids_before = around_.before;
    parts.ids_behind = around_.behind;
  }
  parts.vocab_size = added_.end_id();
  parts.normal = std::move(normal_);
  return parts;
}

}  // namespace millrace::tokenizer::detail
