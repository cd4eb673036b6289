// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/read_added_tokens.hpp"

#include <algorithm>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>

#include "core/interfaces.hpp"

namespace millrace::tokenizer::detail {
namespace {

std::string normalized_content(const added_token& token, const normalizer* normal) {
  if (normal == nullptr) return token.content;
  std::string buffer;
  try {
    const std::string_view content = normal->normalize(token.content, buffer);
    // Limit the size of each content, because there may be many tokens, and all stay in memory.
    const std::size_t most = growth_limit::most_times * token.content.size() + 1024;
    if (content.size() > most) {
      throw unencodable_text("it grows to " + std::to_string(content.size()) +
                             " bytes, expected at most " + std::to_string(most));
    }
    return std::string(content);
  } catch (const unencodable_text& e) {
    throw config_error("the added token " + formats::in_quotes(token.content) +
                       " cannot be normalized: " + e.what());
  }
}

bool required(const json_node& token, const char* key) {
  const json_node value = token.at(key);
  return value.boolean(key);
}

}  // namespace

bool same(const added_token& a, const added_token& b) {
  return a.content == b.content && a.special == b.special && a.normalized == b.normalized &&
         a.single_word == b.single_word && a.strips_left == b.strips_left &&
         a.strips_right == b.strips_right;
}

added_vocabulary::added_vocabulary(const model_file& model) : model_(&model) {
  for (const listed_token& token : model.tokens) {
    model_end_ = std::max(model_end_, std::int64_t{token.id} + 1);
  }
  taken_.resize(static_cast<std::size_t>(model_end_));
  for (const listed_token& token : model.tokens) taken_[static_cast<std::size_t>(token.id)] = true;
  end_id_ = model_end_;
}

std::int32_t added_vocabulary::find(std::string_view content) const {
  const auto found = ids_.find(std::string(content));
  return found != ids_.end() ? found->second : model_->index.find(content);
}

std::string added_vocabulary::add(const std::vector<added_token>& tokens) {
  // As in Hugging Face, the first new id is the number of the model's tokens, not the highest id
  // plus 1.
  const auto size = static_cast<std::int64_t>(model_->tokens.size());
  std::int64_t next = size;
  for (const auto& [id, token] : tokens_) next = std::max(next, std::int64_t{id} + 1);
  for (const added_token& token : tokens) {
    if (token.content.empty()) continue;
    std::int64_t id = find(token.content);
    if (id != token_index::none && tokens_.contains(static_cast<std::int32_t>(id)) &&
        same(tokens_.at(static_cast<std::int32_t>(id)), token)) {
      continue;
    }
    if (id == token_index::none) {
      id = next++;
      if (id < model_end_ && taken_[static_cast<std::size_t>(id)]) {
        return "the added token " + formats::in_quotes(token.content) + " would get the id " +
               std::to_string(id) + ", but another token has it, because the ids have gaps";
      }
      if (id > max_token_id) return "there are too many tokens";
    }
    added_token kept = token;
    kept.id = static_cast<std::int32_t>(id);
    const auto before = tokens_.find(kept.id);
    // A token that has once been special remains special.
    if (before != tokens_.end() && before->second.content == kept.content) {
      kept.special = kept.special || before->second.special;
    }
    ids_[kept.content] = kept.id;
    if (kept.normalized) normalized_once_.insert(kept.id);
    end_id_ = std::max(end_id_, id + 1);
    tokens_[kept.id] = std::move(kept);
  }
  return {};
}

std::vector<added_token> added_vocabulary::tokens() const {
  std::vector<added_token> result;
  result.reserve(tokens_.size());
  for (const auto& [id, token] : tokens_) result.push_back(token);
  std::ranges::sort(result, {}, &added_token::id);
  return result;
}

std::vector<added_token> read_added_tokens(const json_node& list) {
  std::vector<added_token> tokens;
  std::size_t index = 0;
  for (const simdjson::dom::element element : list.array("added_tokens")) {
    const json_node entry(list, element, index++);
    const json_node content = entry.at("content");
    const json_node id = entry.at("id");
    added_token token;
    token.content = std::string(content.string("the content of an added token"));
    token.id = static_cast<std::int32_t>(id.integer("the id of an added token", max_token_id));
    token.special = required(entry, "special");
    token.normalized = required(entry, "normalized");
    token.single_word = required(entry, "single_word");
    token.strips_left = required(entry, "lstrip");
    token.strips_right = required(entry, "rstrip");
    tokens.push_back(std::move(token));
  }
  return tokens;
}

std::string added_vocabulary::written(const added_token& token, const normalizer* normal) const {
  if (normal == nullptr || !normalized_once_.contains(token.id)) return token.content;
  return normalized_content(token, normal);
}

added_token_finders make_finders(std::vector<added_token> tokens, const normalizer* normal,
                                 bool stays_text) {
  std::vector<added_token> raw;
  std::vector<added_token> normalized;
  std::unordered_map<std::string, std::string>
      spelled;  // from normalized content to original content
  for (added_token& token : tokens) {
    token.stays_text = stays_text && token.special;
    if (!token.normalized) {
      raw.push_back(std::move(token));
      continue;
    }
    std::string content = normalized_content(token, normal);
    if (content.empty()) {
      throw config_error("the added token " + formats::in_quotes(token.content) +
                         " is empty after normalization, so Hugging Face's tokenizer would never "
                         "finish; remove it");
    }
    const auto [same, is_new] = spelled.emplace(content, token.content);
    if (!is_new) {
      throw config_error(
          "the added tokens " + formats::in_quotes(same->second) + " and " +
          formats::in_quotes(token.content) +
          " are the same after normalization, so it is undefined which one a text contains; "
          "remove one of them");
    }
    token.content = std::move(content);
    normalized.push_back(std::move(token));
  }
  return {added_token_finder(std::move(raw)), added_token_finder(std::move(normalized))};
}

}  // namespace millrace::tokenizer::detail
