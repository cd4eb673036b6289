// SPDX-License-Identifier: Apache-2.0
#include "record/giant_record.hpp"

#include <atomic>
#include <cassert>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <tbb/parallel_pipeline.h>

#include "process/stop_flag.hpp"
#include "record/giant_chunks.hpp"
#include "record/giant_scanner.hpp"

namespace millrace::preprocess {
namespace {

/// Writes the ids of one key to the sink, updates the counts, and finds sequences that are too
/// long.
class key_writer {
 public:
  key_writer(std::size_t key, const giant_options& options, id_sink& sink, record_counts& counts)
      : key_(key), options_(options), sink_(sink), counts_(counts) {}

  /// @return false if there is a fault; take_fault() then returns it
  bool write(const giant_chunk& chunk) {
    counts_.special_tokens += chunk.special_tokens;
    counts_.text_bytes += static_cast<std::int64_t>(chunk.text.size);
    if (options_.digests) add_to_digest(chunk);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < chunk.id_ends.size(); ++i) {
      const giant_chunk::part& part = chunk.parts[i];
      append(chunk.ids.ids().subspan(begin, chunk.id_ends[i] - begin));
      begin = chunk.id_ends[i];
      if (part.is_last && !end_text()) return false;
    }
    if (!chunk.fault) return true;
    fault_ = not_encodable(" cannot be encoded: " + chunk.fault->what + " (at byte " +
                           std::to_string(chunk.fault->offset_bytes) + " of the text)");
    return false;
  }

  /// Call this after the last text.
  ///
  /// @return false if there is a fault; take_fault() then returns it
  bool end_document() {
    if (ended_length_ == 0) return true;
    if (options_.append_eod) {
      if (++ended_length_ > options_.most_tokens) return refuse(ended_length_);
      sink_.append(key_, {&*options_.append_eod, 1});
    }
    end_sequence();
    return true;
  }

  std::optional<record_fault> take_fault() { return std::move(fault_); }
  text_digest digest() const noexcept { return digest_.finish(); }

 private:
  // Adds ids to the current sequence. The document's last sequence also gets the end-of-document
  // token. No sequence is known to be the last until the next one begins or the document ends. Only
  // then does `sink_` learn that the sequence ended.
  void append(std::span<const std::int32_t> ids) {
    if (ids.empty()) return;
    if (length_ == 0 && ended_length_ != 0) end_sequence();
    length_ += static_cast<std::int64_t>(ids.size());
    if (length_ <= options_.most_tokens) sink_.append(key_, ids);
  }

  void add_to_digest(const giant_chunk& chunk) {
    const std::string_view text(chunk.text.data(), chunk.text.size);
    std::size_t begin = 0;
    for (const std::size_t end : chunk.text_ends) {
      digest_.append(text.substr(begin, end - begin)).end_text();
      begin = end;
    }
    digest_.append(text.substr(begin));
  }

  bool end_text() {
    if (length_ > options_.most_tokens) return refuse(length_);
    if (length_ != 0) ended_length_ = std::exchange(length_, 0);
    return true;
  }

  bool refuse(std::int64_t tokens) {
    fault_ = too_many_tokens(options_.keys[key_], tokens, options_.most_tokens);
    return false;
  }

  void end_sequence() {
    sink_.end_sequence(key_, static_cast<std::int32_t>(std::exchange(ended_length_, 0)));
  }

  record_fault not_encodable(const std::string& what) const {
    return {fault_kind::not_encodable, 0, "text of key \"" + options_.keys[key_].name + '"' + what};
  }

  std::size_t key_;
  const giant_options& options_;
  id_sink& sink_;
  record_counts& counts_;
  std::int64_t length_ = 0;        // ids in the current sequence
  std::int64_t ended_length_ = 0;  // ids in the previous sequence; 0 if `sink_` knows its end
  text_digester digest_;
  std::optional<record_fault> fault_;
};

/// A pool of chunks that are reused while one value is encoded. Thread-safe.
class chunk_pool {
 public:
  giant_chunk* take() {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) return all_.emplace_back(std::make_unique<giant_chunk>()).get();
    giant_chunk* const chunk = free_.back();
    free_.pop_back();
    return chunk;
  }
  void give_back(giant_chunk* chunk) {
    const std::scoped_lock lock(mutex_);
    free_.push_back(chunk);
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<giant_chunk>> all_;
  std::vector<giant_chunk*> free_;
};

// Selects the encoder for the parts. This is usually the encoder of the calling thread. But if the
// tokenizer needs the parts in order, this is a separate encoder, because a waiting thread may run
// other tasks, which would use the thread's encoder between two parts.
struct encoding {
  encoding(const tokenizer::tokenizer& tokenizer, std::size_t memory_bytes,
           const encoder_of_thread& of_thread, const std::atomic<int>* stop)
      : own(tokenizer.parts_in_order() ? tokenizer.make_encoder(memory_bytes) : nullptr),
        shared(of_thread) {
    if (own && stop != nullptr) own->set_interrupt_check([stop] { expect_going_on(stop); });
  }

  tokenizer::encoder& here() const { return own ? *own : shared(); }

  std::unique_ptr<tokenizer::encoder> own;
  const encoder_of_thread& shared;
};

// Adds the lifetime of this object to the time of a stage. Does nothing if `clock` is null.
class optional_timer {
 public:
  optional_timer(stage_clock* clock, stage_clock::stage which) {
    if (clock != nullptr) running_.emplace(*clock, which);
  }

 private:
  std::optional<stage_clock::running> running_;
};

void run_chunks(giant_chunk_reader& chunks, const giant_options& options, const encoding& encoders,
                key_writer& writer) {
  chunk_pool pool;
  std::atomic<bool> stopped = false;
  const auto read = [&](tbb::flow_control& flow) -> giant_chunk* {
    giant_chunk* const chunk = pool.take();
    const optional_timer reading(options.clock, stage_clock::stage::read);
    if (!stopped && chunks.next(*chunk)) return chunk;
    flow.stop();
    return nullptr;
  };
  const auto encode = [&](giant_chunk* chunk) {
    const optional_timer encoding(options.clock, stage_clock::stage::encode);
    if (!stopped) chunk->encode(encoders.here());
    return chunk;
  };
  const auto write = [&](giant_chunk* chunk) {
    const optional_timer writing(options.clock, stage_clock::stage::write);
    if (!stopped && !writer.write(*chunk)) stopped = true;
    pool.give_back(chunk);
  };
  const auto in_order = tbb::filter_mode::serial_in_order;
  tbb::parallel_pipeline(static_cast<std::size_t>(options.workers) + 2,
                         tbb::make_filter<void, giant_chunk*>(in_order, read) &
                             tbb::make_filter<giant_chunk*, giant_chunk*>(
                                 encoders.own ? in_order : tbb::filter_mode::parallel, encode) &
                             tbb::make_filter<giant_chunk*, void>(in_order, write));
}

std::optional<record_fault> encode_values(const line_range& line, const giant_options& options,
                                          const tokenizer::tokenizer& tokenizer,
                                          const encoder_of_thread& encoder, id_sink& sink,
                                          record_counts& counts) {
  assert(!options.digests || options.keys.size() == 1);
  std::vector<giant_value> values;
  {
    const optional_timer reading(options.clock, stage_clock::stage::read);
    auto fault = scan_giant_line(line, options.keys, options.window_bytes, values);
    if (fault) return fault;
  }
  const encoding encoders(tokenizer, options.tokenizer_bytes, encoder, line.stop);
  for (std::size_t key = 0; key < values.size(); ++key) {
    std::optional<sentence_splitter> splitter;
    if (options.sentences) {
      splitter.emplace(options.sentences->language, options.sentences->keep_newlines);
    }
    giant_chunk_reader chunks(tokenizer, giant_texts(line, values[key], options.window_bytes),
                              options.chunk_bytes, std::move(splitter));
    key_writer writer(key, options, sink, counts);
    run_chunks(chunks, options, encoders, writer);
    if (auto fault = writer.take_fault()) return fault;
    if (!writer.end_document()) return writer.take_fault();
    counts.lone_surrogates += chunks.lone_surrogates();
    if (options.digests) sink.take_digest(writer.digest());
  }
  counts.documents = 1;
  return std::nullopt;
}

}  // namespace

std::optional<record_fault> encode_giant_record(const line_range& line,
                                                const giant_options& options,
                                                const tokenizer::tokenizer& tokenizer,
                                                const encoder_of_thread& encoder, id_sink& sink,
                                                record_counts& counts) {
  counts = {};
  auto fault = encode_values(line, options, tokenizer, encoder, sink, counts);
  if (fault) {
    counts = {};
    counts.bad_records[static_cast<std::size_t>(fault->kind)] = 1;
  }
  return fault;
}

}  // namespace millrace::preprocess
