// SPDX-License-Identifier: Apache-2.0
#include "record/conversation_reader.hpp"

#include <algorithm>

#include <millrace/error.hpp>

namespace millrace::preprocess {
namespace {

std::vector<chat::dict_entry> variables_of(const conversation_options& options) {
  std::vector<chat::dict_entry> variables;
  for (const auto& [name, text] : options.variables) {
    variables.push_back({chat::value(std::string_view(name)), chat::value(std::string_view(text))});
  }
  if (options.date) variables.push_back({chat::value("date_now"), chat::value(*options.date)});
  return variables;
}

}  // namespace

conversation_reader::conversation_reader(const conversation_options& options)
    : renderer_(options.templates, variables_of(options), options.training),
      exact_(std::vector{options.training.messages_key}) {}

// Says what is wrong with a line that is not an object in JSON, in the words of all other runs.
std::optional<record_fault> conversation_reader::fault_of_json(std::string_view line) {
  auto fault = exact_.parse(line);
  if (fault && fault->kind != fault_kind::missing_key && fault->kind != fault_kind::wrong_type) {
    return fault;
  }
  return std::nullopt;
}

std::optional<record_fault> conversation_reader::read(std::string_view line) {
  pool_.clear();
  try {
    const chat::value record = chat::parse_json(line, pool_);
    if (!record.is(chat::value_kind::dict)) {
      if (auto fault = fault_of_json(line)) return fault;
    }
    renderer_.render(record, text_);
    return std::nullopt;
  } catch (const chat::conversation_error& e) {
    return record_fault{fault_kind::bad_conversation, 0, e.what()};
  } catch (const chat::template_error& e) {
    return record_fault{fault_kind::bad_conversation, 0,
                        std::string("the chat template failed: ") + e.what()};
  } catch (const format_error& e) {
    if (auto fault = fault_of_json(line)) return fault;
    return record_fault{fault_kind::bad_conversation, static_cast<std::size_t>(e.offset()),
                        e.problem()};
  }
}

std::int64_t append_trained(std::span<const tokenizer::byte_span> tokens,
                            std::span<const chat::byte_span> trained, std::size_t skipped,
                            formats::bit_buffer& out) {
  std::int64_t count = 0;
  std::size_t done = 0;  // tokens whose bit was appended
  std::size_t first = 0;
  const auto is_empty = [&](std::size_t i) { return tokens[i].begin >= tokens[i].end; };
  for (const chat::byte_span& span : trained) {
    while (first < tokens.size() && (is_empty(first) || tokens[first].end <= span.begin)) ++first;
    if (first == tokens.size()) break;
    if (tokens[first].begin >= span.end) continue;
    std::size_t last = first;
    for (std::size_t i = first + 1;
         i < tokens.size() && (is_empty(i) || tokens[i].begin < span.end); ++i) {
      if (!is_empty(i)) last = i;
    }
    const std::size_t begin = std::max(first + skipped, done);
    if (begin <= last) {
      out.append_run(false, begin - done);
      out.append_run(true, last + 1 - begin);
      count += static_cast<std::int64_t>(last + 1 - begin);
      done = last + 1;
    }
    first = last;  // may overlap the next span, too
  }
  out.append_run(false, tokens.size() - done);
  return count;
}

std::optional<std::size_t> shared_token(std::span<const tokenizer::byte_span> tokens,
                                        std::span<const chat::byte_span> trained) {
  std::size_t token = 0;
  const auto cuts = [&](std::size_t edge) {
    while (token < tokens.size() && tokens[token].end <= edge) ++token;
    return token < tokens.size() && tokens[token].begin < edge;
  };
  for (const chat::byte_span& span : trained) {
    if (cuts(span.begin)) return span.begin;
    if (cuts(span.end)) return span.end;
  }
  return std::nullopt;
}

}  // namespace millrace::preprocess
