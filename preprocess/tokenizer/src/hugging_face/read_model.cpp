// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/read_model.hpp"

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include <millrace/formats/detail/in_quotes.hpp>

namespace millrace::tokenizer::detail {
namespace {

constexpr std::array<std::pair<std::string_view, model_kind>, 4> kinds = {{
    {"BPE", model_kind::bpe},
    {"WordPiece", model_kind::word_piece},
    {"WordLevel", model_kind::word_level},
    {"Unigram", model_kind::unigram},
}};

// In older files, the model has no "type". Then its entries determine its kind. They are tested in
// the same order as in Hugging Face.
model_kind kind_of(const json_node& model) {
  if (const auto type = model.find("type")) {
    const std::string_view name = type->string("the type of the model");
    for (const auto& [known, kind] : kinds) {
      if (name == known) return kind;
    }
    type->fail("the model type " + formats::in_quotes(name) +
               " is not one of BPE, WordPiece, WordLevel and Unigram");
  }
  if (model.find("merges")) return model_kind::bpe;
  if (model.find("max_input_chars_per_word")) return model_kind::word_piece;
  if (model.find("unk_token")) return model_kind::word_level;
  return model_kind::unigram;
}

// Detects duplicate ids.
class id_set {
 public:
  bool add(std::int64_t id) {
    const auto at = static_cast<std::size_t>(id);
    if (at >= there_.size()) there_.resize(at + at / 2 + 64);
    return !std::exchange(there_[at], true);
  }

 private:
  std::vector<char> there_;
};

void read_vocab(const json_node& vocab, model_file& file) {
  const simdjson::dom::object entries = vocab.object("vocab");
  file.tokens.reserve(entries.size());
  id_set ids;
  for (const auto [text, id] : entries) {
    const json_node entry(vocab, id, file.tokens.size());
    const std::int64_t value = entry.integer("the id of a token", max_token_id);
    if (!ids.add(value)) entry.fail("the id " + std::to_string(value) + " occurs twice");
    file.tokens.push_back({text, static_cast<std::int32_t>(value)});
  }
  file.index = token_index(file.tokens.size());
  for (std::size_t i = 0; i < file.tokens.size(); ++i) {
    constexpr std::size_t ahead = 16;
    if (i + ahead < file.tokens.size()) file.index.prefetch(file.tokens[i + ahead].text);
    const listed_token& token = file.tokens[i];
    if (!file.index.add(token.text, token.id)) {
      json_node(vocab, vocab.element(), i)
          .fail("token " + formats::in_quotes(token.text) + " occurs twice");
    }
  }
}

// Finds the merge result of two tokens. Files list merges in the order of their results. So the
// next result is usually the latest result or the token after it. Any other result is looked up.
class merge_results {
 public:
  explicit merge_results(const model_file& file) : file_(&file) {
    for (const listed_token& token : file.tokens) {
      const auto at = static_cast<std::size_t>(token.id);
      if (at >= texts_.size()) texts_.resize(at + at / 2 + 64);
      texts_[at] = token.text;
    }
  }

  std::int32_t find(std::string_view left, std::string_view right) {
    if (!is(last_, left, right) && !is(++last_, left, right)) {
      joined_.assign(left).append(right);
      const std::int32_t found = file_->index.find(joined_);
      if (found == token_index::none) return found;
      last_ = static_cast<std::size_t>(found);
    }
    return static_cast<std::int32_t>(last_);
  }

 private:
  bool is(std::size_t id, std::string_view left, std::string_view right) const {
    if (id >= texts_.size() || texts_[id].size() != left.size() + right.size()) return false;
    return !texts_[id].empty() && texts_[id].starts_with(left) && texts_[id].ends_with(right);
  }

  const model_file* file_;
  std::vector<std::string_view> texts_;  // by id; empty for unused ids
  std::size_t last_ = 0;
  std::string joined_;
};

// Parses "a b" or ["a", "b"]. In the second form, tokens may contain spaces.
std::pair<std::string_view, std::string_view> parts_of(const json_node& merge, bool spelled) {
  if (spelled) {
    const std::string_view text = merge.string("a merge");
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
      merge.fail("expected two tokens with one space between, found " + formats::in_quotes(text));
    }
    return {text.substr(0, space), text.substr(space + 1)};
  }
  const simdjson::dom::array pair = merge.array("a merge");
  std::array<std::string_view, 2> parts;
  std::size_t count = 0;
  for (const simdjson::dom::element part : pair) {
    if (count < 2 && part.get_string().get(parts[count]) != simdjson::SUCCESS) break;
    ++count;
  }
  if (count != 2 || pair.size() != 2) merge.fail("a merge is not two strings");
  return {parts[0], parts[1]};
}

// Reads the list of merges in batches. Prefetches the tokens of a whole batch before looking up the
// first token, so that their cache misses overlap.
class merge_reader {
 public:
  merge_reader(const json_node& merges, model_file& file)
      : merges_(&merges), file_(&file), results_(file) {}

  void read() {
    const simdjson::dom::array list = merges_->array("merges");
    const bool spelled = list.size() != 0 && (*list.begin()).is_string();
    file_->merges.reserve(list.size());
    std::size_t number = 0;
    for (const simdjson::dom::element element : list) {
      const json_node merge(*merges_, element, number++);
      if (spelled && merge.string("a merge").starts_with("#version")) continue;
      const auto [left, right] = parts_of(merge, spelled);
      file_->index.prefetch(left);
      file_->index.prefetch(right);
      waiting_[count_++] = {element, number - 1, left, right};
      if (count_ == waiting_.size()) look_up();
    }
    look_up();
  }

 private:
  struct listed_merge {
    simdjson::dom::element element;
    std::size_t number;
    std::string_view left;
    std::string_view right;
  };

  void look_up() {
    for (const listed_merge& merge : std::span(waiting_).first(count_)) look_up(merge);
    count_ = 0;
  }

  void look_up(const listed_merge& merge) {
    const merge_rule rule{id_of(merge, merge.left, "left part"),
                          id_of(merge, merge.right, "right part"), 0};
    const std::string_view prefix = file_->prefix;
    if (merge.right.size() <= prefix.size() && !prefix.empty()) {
      fail(merge, "right part " + formats::in_quotes(merge.right) +
                      " is not longer than the prefix " + formats::in_quotes(prefix));
    }
    const std::string_view added = merge.right.substr(prefix.size());
    const std::int32_t result = results_.find(merge.left, added);
    if (result == token_index::none) {
      fail(merge, "merged token " + formats::in_quotes(std::string(merge.left).append(added)) +
                      " is not in the vocabulary");
    }
    file_->merges.push_back({rule.left, rule.right, result});
  }

  std::int32_t id_of(const listed_merge& merge, std::string_view token, const char* role) const {
    const std::int32_t id = file_->index.find(token);
    if (id == token_index::none) {
      fail(merge,
           std::string(role) + " " + formats::in_quotes(token) + " is not in the vocabulary");
    }
    return id;
  }

  [[noreturn]] void fail(const listed_merge& merge, const std::string& what) const {
    json_node(*merges_, merge.element, merge.number).fail(what);
  }

  const json_node* merges_;
  model_file* file_;
  merge_results results_;
  std::array<listed_merge, 64> waiting_;
  std::size_t count_ = 0;
};

void read_bpe(const json_node& model, model_file& file) {
  if (const auto dropout = model.find("dropout")) {
    if (dropout->number("dropout") != 0) {
      dropout->fail("dropout makes the ids random, expected 0 or none");
    }
  }
  file.unknown = model.text("unk_token");
  file.prefix = model.text("continuing_subword_prefix").value_or("");
  file.suffix = model.text("end_of_word_suffix").value_or("");
  file.fuse_unknown = model.flag("fuse_unk", false);
  file.byte_fallback = model.flag("byte_fallback", false);
  file.whole_words_first = model.flag("ignore_merges", false);
  read_vocab(model.at("vocab"), file);
  merge_reader(model.at("merges"), file).read();
}

void read_word_piece(const json_node& model, model_file& file) {
  const json_node unknown = model.at("unk_token");
  const json_node prefix = model.at("continuing_subword_prefix");
  file.unknown = unknown.string("unk_token");
  file.prefix = prefix.string("continuing_subword_prefix");
  const json_node longest = model.at("max_input_chars_per_word");
  file.max_characters_per_word =
      static_cast<std::size_t>(longest.integer("max_input_chars_per_word", std::int64_t{1} << 62));
  read_vocab(model.at("vocab"), file);
}

void read_word_level(const json_node& model, model_file& file) {
  const json_node unknown = model.at("unk_token");
  file.unknown = unknown.string("unk_token");
  read_vocab(model.at("vocab"), file);
}

void read_unigram(const json_node& model, model_file& file) {
  file.byte_fallback = model.flag("byte_fallback", false);
  const json_node vocab = model.at("vocab");
  const simdjson::dom::array list = vocab.array("vocab");
  file.pieces.reserve(list.size());
  for (const simdjson::dom::element element : list) {
    const json_node entry(vocab, element, file.pieces.size());
    std::size_t parts = 0;
    unigram_piece piece;
    for (const simdjson::dom::element part : entry.array("a piece")) {
      const json_node value(entry, part, parts);
      if (parts == 0) piece.text = value.string("the text of a piece");
      if (parts == 1) (void)value.number("the score of a piece");
      ++parts;
    }
    if (parts != 2) entry.fail("a piece is not a text and a score");
    if (file.pieces.size() > max_token_id) entry.fail("there are too many pieces");
    file.tokens.push_back({piece.text, static_cast<std::int32_t>(file.pieces.size())});
    file.pieces.push_back(piece);
  }
  const std::vector<std::string_view> scores = vocab.numbers();
  for (std::size_t i = 0; i < file.pieces.size(); ++i) {
    file.pieces[i].score = reference_number(scores.at(i));
  }
  // If two pieces have the same text, the later one wins.
  file.index = token_index(file.tokens.size());
  for (auto token = file.tokens.rbegin(); token != file.tokens.rend(); ++token) {
    file.index.add(token->text, token->id);
  }
  if (const auto unknown = model.find("unk_id")) {
    const auto count = static_cast<std::int64_t>(file.pieces.size());
    file.unknown_id = static_cast<std::int32_t>(unknown->integer("unk_id", count - 1));
  }
}

}  // namespace

model_file read_model(const json_node& model) {
  model_file file;
  file.kind = kind_of(model);
  switch (file.kind) {
    case model_kind::bpe:
      read_bpe(model, file);
      break;
    case model_kind::word_piece:
      read_word_piece(model, file);
      break;
    case model_kind::word_level:
      read_word_level(model, file);
      break;
    case model_kind::unigram:
      read_unigram(model, file);
      break;
  }
  if (file.unknown) {
    const std::int32_t id = file.index.find(*file.unknown);
    if (id != token_index::none) file.unknown_id = id;
  }
  return file;
}

}  // namespace millrace::tokenizer::detail
