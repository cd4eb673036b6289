// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/tokenizer_folder.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>

#include "hugging_face/config_refusals.hpp"
#include "hugging_face/folder_class.hpp"

namespace millrace::tokenizer::detail {
namespace {

constexpr std::array<std::string_view, 4> template_classes = {"Llama", "CodeLlama", "Gemma",
                                                              "Cohere"};

// Classes that create a BertNormalizer from their settings.
constexpr std::array<std::string_view, 17> normalizer_classes = {
    "Bert",    "ConvBert", "DPRContextEncoder", "DPRQuestionEncoder", "DPRReader",  "DistilBert",
    "Electra", "Funnel",   "LayoutLM",          "LayoutLMv2",         "MobileBert", "Lxmert",
    "MPNet",   "Realm",    "Splinter",          "SqueezeBert",        "RetriBert"};

// The names of the tokens that a class adds before and after a text.
struct class_template {
  std::string_view stem;
  std::vector<const char*> before;
  std::vector<const char*> behind;
};

// The templates of `transformers` release 5.23.
const std::vector<class_template> fixed_templates = [] {
  std::vector<class_template> all;
  for (const char* stem : {"Bert",
                           "ConvBert",
                           "DPRContextEncoder",
                           "DPRQuestionEncoder",
                           "DPRReader",
                           "DistilBert",
                           "Electra",
                           "LayoutLM",
                           "LayoutLMv2",
                           "LayoutLMv3",
                           "LayoutXLM",
                           "Lxmert",
                           "MarkupLM",
                           "MobileBert",
                           "Realm",
                           "RetriBert",
                           "Splinter",
                           "SqueezeBert",
                           "Albert",
                           "BigBird",
                           "FNet",
                           "RemBert",
                           "Deberta",
                           "DebertaV2",
                           "Roberta",
                           "Bart",
                           "LED",
                           "Longformer",
                           "Mvp",
                           "MPNet",
                           "Funnel"}) {
    all.push_back({stem, {"cls_token"}, {"sep_token"}});
  }
  for (const char* stem : {"CLIP", "Camembert", "XLMRoberta"}) {
    all.push_back({stem, {"bos_token"}, {"eos_token"}});
  }
  for (const char* stem : {"Pegasus", "T5", "Udop"}) all.push_back({stem, {}, {"eos_token"}});
  all.push_back({"XLNet", {}, {"sep_token", "cls_token"}});
  all.push_back({"CodeGen", {}, {}});
  return all;
}();

// A control token that a file of `transformers` gives as a plain string.
added_token plain(std::string content) {
  added_token token;
  token.content = std::move(content);
  return token;
}

// Reads a token: a string, or an object with flags. If `of_specials` is true, the token is special,
// even if its own flag says otherwise.
added_token token_in(const json_node& value, bool of_specials = false) {
  if (value.is_string()) return plain(std::string(value.string("a token")));
  const json_node content = value.at("content");
  added_token token = plain(std::string(content.string("the content of a token")));
  token.special = of_specials || value.flag("special", true);
  token.normalized = value.flag("normalized", !token.special);
  token.single_word = value.flag("single_word", false);
  token.strips_left = value.flag("lstrip", false);
  token.strips_right = value.flag("rstrip", false);
  return token;
}

// Refuses duplicate tokens, because the flags that apply to them depend on the version of
// transformers.
void refuse_twice(const std::vector<added_token>& tokens, const json_node& list) {
  std::set<std::string_view> seen;
  for (const added_token& token : tokens) {
    if (!seen.insert(token.content).second) {
      list.fail("the token " + formats::in_quotes(token.content) + " occurs twice");
    }
  }
}

class folder_settings {
 public:
  folder_settings(tokenizer_file& file, const json_node& config, const folder_class& opened_as)
      : file_(&file), config_(config), opened_as_(&opened_as) {}

  // Reads the control tokens that a file names, and its lists of extra tokens. The names in a file
  // override the names in files that were read before. A null removes the token with that name.
  void read_names(const json_node& from, bool of_specials) {
    const simdjson::dom::object entries = from.object("the file");
    for (const auto [key, value] : entries) given_.emplace(key);
    for (const char* name : token_names) {
      simdjson::dom::element entry;
      if (entries[name].get(entry) != simdjson::SUCCESS) continue;
      const auto value = from.find(name);
      named_.erase(name);
      if (value) named_.emplace(name, token_in(*value, of_specials));
    }
    const bool is_first = extra_.empty();
    for (const char* list : {"extra_special_tokens", "additional_special_tokens"}) {
      const auto value = from.find(list);
      if (!value) continue;
      if (value->element().is_object() && !of_specials) continue;  // has named tokens
      if (!value->element().is_array()) value->fail(std::string(list) + " is not an array");
      if (is_first && !extra_.empty()) continue;
      std::size_t index = 0;
      for (const simdjson::dom::element each : value->array(list)) {
        const json_node entry(*value, each, index++);
        added_token token = token_in(entry, of_specials);
        if (!entry.is_string()) refuse_other_flags(token, entry);
        if (is_first) {
          extra_.push_back(std::move(token));
        } else if (std::ranges::find(extra_, token.content, &added_token::content) ==
                   extra_.end()) {
          entry.fail(
              "the token " + formats::in_quotes(token.content) +
              " is not in the list with this name in tokenizer_config.json; whether transformers "
              "uses it depends on its version. Add it there, or remove it here");
        }
      }
    }
  }

  // If no file sets a name, takes the token that the class defines for it. Refuses the config if
  // the class would have to add such a token: similar models lack the token, and its flags depend
  // on the class.
  void name_by_class() {
    const std::string_view stem = opened_as_->stem();
    const std::vector<added_token> listed = listed_tokens();
    const auto check_added = [&](const std::string& what, std::string_view content,
                                 const std::string& advice) {
      const std::vector<added_token> there = file_->added().tokens();
      if (std::ranges::find(there, content, &added_token::content) != there.end() ||
          std::ranges::find(listed, content, &added_token::content) != listed.end()) {
        return;
      }
      config_.fail("tokenizer_class " + opened_as_->name + what + formats::in_quotes(content) +
                   ", which is not in added_tokens of tokenizer.json" + advice);
    };
    for (const class_token& token : class_tokens(stem)) {
      if (given_.contains(token.name)) continue;
      check_added(" has the default " + std::string(token.name) + " ", token.content,
                  "; set " + std::string(token.name) + " to another token or to null");
      if (token.always) named_.emplace(token.name, plain(std::string(token.content)));
    }
    for (const std::string& content : class_extra_tokens(stem)) {
      check_added(" has the token ", content, "");
    }
  }

  void add_tokens() {
    std::vector<added_token> tokens = listed_tokens();
    const std::vector<added_token> there = file_->added().tokens();
    const std::size_t listed = tokens.size();
    // A token whose content already exists is not added again.
    const auto known = [&](const std::string& content) {
      const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(listed);
      return std::ranges::find(there, content, &added_token::content) != there.end() ||
             std::ranges::find(tokens.begin(), end, content, &added_token::content) != end;
    };
    const auto add_new = [&](const added_token& token) {
      if (known(token.content)) return;
      const auto before = std::ranges::find(tokens, token.content, &added_token::content);
      if (before != tokens.end() && !same(*before, token)) {
        config_.fail("the token " + formats::in_quotes(token.content) +
                     " is not in tokenizer.json, and tokenizer_config.json lists it twice with "
                     "different flags; which of them apply depends on the version of transformers");
      }
      tokens.push_back(token);
    };
    for (const char* name : token_names) {
      const auto named = named_.find(name);
      if (named == named_.end()) continue;
      added_token token = named->second;
      token.special = true;
      add_new(token);
    }
    for (const added_token& token : extra_) add_new(token);
    add(tokens);
  }

  // Does what Megatron does after `transformers`. If exactly one of the names eos and sep has a
  // token, the other name gets the same token, and the token loses its flags. The same holds for
  // bos and cls.
  void share_names() {
    std::vector<added_token> renamed;
    const auto share = [&](const char* one, const char* other) {
      const bool has_one = named_.contains(one);
      if (has_one == named_.contains(other)) return;
      const added_token shared = plain(named_.at(has_one ? one : other).content);
      named_.insert_or_assign(has_one ? other : one, shared);
      renamed.push_back(shared);
    };
    share("eos_token", "sep_token");
    share("bos_token", "cls_token");
    add(renamed);
  }

  // Some classes use the template of tokenizer.json in some versions of `transformers`, and create
  // their own template in others. If the two templates differ, refuses the config, because the ids
  // added around a text would depend on the version.
  void check_template() const {
    const std::string_view name = opened_as_->name;
    if (std::ranges::any_of(template_classes, [&](auto c) { return name.starts_with(c); })) {
      check_flags(true);
    } else if (opened_as_->stem() == "GPTNeoX") {
      check_flags(false);
    }
    for (const class_template& known : fixed_templates) {
      if (opened_as_->stem() != known.stem) continue;
      if (ids_of(known.before) == file_->around().before &&
          ids_of(known.behind) == file_->around().behind) {
        return;
      }
      config_.fail("tokenizer_class " + std::string(name) +
                   " has its own template, which differs from the post_processor of "
                   "tokenizer.json. transformers before version 5 uses the post_processor, later "
                   "versions the template. Make them agree, or pass "
                   "--tokenizer-hf-no-include-special-tokens");
    }
  }

  std::vector<std::pair<std::string, std::string>> names() const {
    std::vector<std::pair<std::string, std::string>> all;
    for (const char* name : token_names) {
      const auto named = named_.find(name);
      if (named != named_.end()) all.emplace_back(name, named->second.content);
    }
    return all;
  }

  std::optional<std::int32_t> id_of(const char* name) const {
    const auto named = named_.find(name);
    if (named == named_.end()) return std::nullopt;
    const std::int32_t id = file_->added().find(named->second.content);
    if (id == token_index::none) return std::nullopt;
    return id;
  }

 private:
  void refuse_other_flags(added_token token, const json_node& entry) const {
    const std::vector<added_token> there = file_->added().tokens();
    const auto known = std::ranges::find(there, token.content, &added_token::content);
    if (known == there.end()) return;
    token.special = known->special;
    if (same(token, *known)) return;
    entry.fail("the token " + formats::in_quotes(token.content) +
               " has other flags than in tokenizer.json; which of them apply depends on the "
               "version of transformers. Make them agree");
  }

  // Checks a class that creates a template from two flags: add_bos_token, whose default is
  // `otherwise`, and add_eos_token.
  void check_flags(bool otherwise) const {
    const auto expected = [&](const char* flag, bool given, const char* token) {
      std::vector<std::int32_t> ids;
      const auto id = config_.flag(flag, given) ? id_of(token) : std::nullopt;
      if (id) ids.push_back(*id);
      return ids;
    };
    if (expected("add_bos_token", otherwise, "bos_token") == file_->around().before &&
        expected("add_eos_token", false, "eos_token") == file_->around().behind) {
      return;
    }
    config_.fail(
        "add_bos_token and add_eos_token (default: " + std::string(otherwise ? "true" : "false") +
        " and false) contradict the post_processor of tokenizer.json. transformers before "
        "version 5 uses the flags, later versions the post_processor. Make them agree, or "
        "pass --tokenizer-hf-no-include-special-tokens");
  }

  std::vector<std::int32_t> ids_of(const std::vector<const char*>& names) const {
    std::vector<std::int32_t> ids;
    ids.reserve(names.size());
    for (const char* name : names) ids.push_back(id_of(name).value_or(token_index::none));
    return ids;
  }

  // Reads "added_tokens_decoder", sorted by id. The ids have no other effect.
  std::vector<added_token> listed_tokens() const {
    const auto decoder = config_.find("added_tokens_decoder");
    std::map<std::int64_t, added_token> by_id;
    if (!decoder) return {};
    std::size_t index = 0;
    for (const auto [key, element] : decoder->object("added_tokens_decoder")) {
      const json_node value(*decoder, element, index++);
      std::int64_t id = 0;
      const bool number = !key.empty() && key.size() < 10 &&
                          key.find_first_not_of("0123456789") == std::string_view::npos;
      if (!number) value.fail("the key " + formats::in_quotes(key) + " is not an id");
      id = std::stoll(std::string(key));
      by_id.insert_or_assign(id, token_in(value));
    }
    std::vector<added_token> tokens;
    tokens.reserve(by_id.size());
    for (auto& [id, token] : by_id) tokens.push_back(std::move(token));
    refuse_twice(tokens, *decoder);
    return tokens;
  }

  void add(const std::vector<added_token>& tokens) {
    const std::string problem = file_->added().add(tokens);
    if (!problem.empty()) config_.fail(problem);
  }

  tokenizer_file* file_;
  const json_node& config_;
  const folder_class* opened_as_;
  std::set<std::string, std::less<>> given_;  // names that a file sets, even if to null
  std::map<std::string, added_token> named_;
  std::vector<added_token> extra_;
};

// Checks that tokenizer.json adds each token of added_tokens.json with the same id. `transformers`
// would add any other token too, but the token's flags and id would depend on many other things.
void check_added(const json_node& added, const tokenizer_file& file) {
  std::vector<added_token> there;
  if (const auto list = file.root().find("added_tokens")) there = read_added_tokens(*list);
  std::size_t index = 0;
  for (const auto [key, element] : added.object("the file")) {
    const json_node value(added, element, index++);
    const std::int64_t id = value.integer("the id of a token", max_token_id);
    const auto token = std::ranges::find(there, key, &added_token::content);
    if (token != there.end() && token->id == id) continue;
    value.fail("the token " + formats::in_quotes(key) + " with the id " + std::to_string(id) +
               " is not in added_tokens of tokenizer.json" +
               (token == there.end() ? "" : ", where its id is " + std::to_string(token->id)) +
               "; save the tokenizer again with transformers, or remove this file");
  }
}

// Calls `read` with the contents of a file, and adds the file's name to errors. The file matters
// only if the config has no "added_tokens_decoder". If the file is absent, `text` is empty, and
// `read` is not called.
template <class Read>
void with_older_file(const char* name, std::string_view text, Read read) {
  if (text.empty()) return;
  try {
    const json_document document(text);
    read(json_node(document));
  } catch (const format_error& e) {
    throw e.in(name);
  }
}

// Refuses a flag that contradicts tokenizer.json.
void check(const json_node& config, const char* key, bool otherwise, bool there) {
  if (config.flag(key, otherwise) == there) return;
  const auto value = config.find(key);
  (value ? *value : config)
      .fail(std::string(key) + " is " + (there ? "false" : "true") + (value ? "" : " by default") +
            ", but " + (there ? "true" : "false") + " in tokenizer.json; make them agree");
}

void check_contradictions(const json_node& config, const folder_class& opened_as,
                          const tokenizer_file& file) {
  const auto pre_tokenizer = file.root().find("pre_tokenizer");
  if (pre_tokenizer && pre_tokenizer->text("type") == "ByteLevel") {
    const bool there = pre_tokenizer->flag("add_prefix_space", true);
    check(config, "add_prefix_space", false, there);
  }
  const auto normalizer = file.root().find("normalizer");
  if (normalizer &&
      std::ranges::find(normalizer_classes, opened_as.stem()) != normalizer_classes.end() &&
      normalizer->text("type") == "BertNormalizer") {
    check(config, "do_lower_case", true, normalizer->flag("lowercase", true));
    check(config, "tokenize_chinese_chars", true, normalizer->flag("handle_chinese_chars", true));
    const auto wanted = config.find("strip_accents");
    const auto there = normalizer->find("strip_accents");
    if (wanted.has_value() != there.has_value() ||
        (wanted && wanted->boolean("strip_accents") != there->boolean("strip_accents"))) {
      config.fail("strip_accents differs from tokenizer.json; make them agree");
    }
  }
}

}  // namespace

folder_answer apply_config(tokenizer_file& file, const folder_texts& texts,
                           bool special_tokens_count) {
  const json_document document(texts.config);
  const json_node root(document);
  folder_answer answer{class_of_folder(root, texts.model), {}, {}};
  check_contradictions(root, answer.opened_as, file);
  if (const auto list = file.root().find("added_tokens")) {
    try {
      refuse_twice(read_added_tokens(*list), *list);
    } catch (const format_error& e) {
      throw e.in("tokenizer.json");
    }
  }
  folder_settings settings(file, root, answer.opened_as);
  settings.read_names(root, false);
  if (!root.find("added_tokens_decoder")) {
    with_older_file("special_tokens_map.json", texts.map,
                    [&](const json_node& map) { settings.read_names(map, true); });
    with_older_file("added_tokens.json", texts.added,
                    [&](const json_node& added) { check_added(added, file); });
  }
  settings.name_by_class();
  settings.add_tokens();
  refuse_what_is_not_followed(root, answer.opened_as, file.added());
  if (special_tokens_count) settings.check_template();
  answer.names = settings.names();
  settings.share_names();
  answer.eod = settings.id_of("eos_token");
  return answer;
}

}  // namespace millrace::tokenizer::detail
