// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/post_processor.hpp"

#include <string>

#include "hugging_face/read_model.hpp"
#include "messages/in_quotes.hpp"

namespace millrace::tokenizer::detail {
namespace {

void append_special(const json_node& tokens, const json_node& piece,
                    std::vector<std::int32_t>& ids) {
  const json_node name = piece.at("id");
  const std::string_view key = name.string("the id of a special token");
  const auto token = tokens.find(key);
  if (!token) name.fail("the special token " + in_quotes(key) + " is not listed");
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

bool is_empty(const text_template& t) {
  return t.before.empty() && t.behind.empty();
}

}  // namespace

text_template read_post_processor(const json_node& processor) {
  const json_node type = processor.at("type");
  const std::string_view name = type.string("the type of the post-processor");
  if (name == "ByteLevel") return {};
  if (name == "TemplateProcessing") return read_template(processor);
  if (name == "BertProcessing" || name == "RobertaProcessing") {
    return {{id_of_pair(processor, "cls")}, {id_of_pair(processor, "sep")}};
  }
  if (name != "Sequence") type.fail("the post-processor " + in_quotes(name) + " is not known");
  text_template result;
  const json_node list = processor.at("processors");
  std::size_t index = 0;
  for (const simdjson::dom::element element : list.array("processors")) {
    const json_node each(list, element, index++);
    text_template next = read_post_processor(each);
    if (is_empty(next)) continue;
    if (!is_empty(result)) each.fail("a second post-processor adds special tokens");
    result = std::move(next);
  }
  return result;
}

}  // namespace millrace::tokenizer::detail
