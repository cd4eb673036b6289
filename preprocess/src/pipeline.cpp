// SPDX-License-Identifier: Apache-2.0
#include "pipeline.hpp"

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <millrace/error.hpp>

#include "block_reader.hpp"
#include "committer.hpp"
#include "output_check.hpp"

namespace millrace::preprocess {
namespace {

/// What travels down the pipeline: a block and what became of it.
struct work_item {
  byte_block block;
  encoded_block encoded;
  std::exception_ptr failure;  // the reader's, thrown on by the last stage
};

/// The items of one run, reused: never more than are in flight at once. Any thread.
class item_pool {
 public:
  explicit item_pool(std::size_t usual_bytes) : largest_bytes_(8 * usual_bytes) {}

  work_item* take() {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) return all_.emplace_back(std::make_unique<work_item>()).get();
    work_item* item = free_.back();
    free_.pop_back();
    return item;
  }

  void give_back(work_item* item) {
    // A giant line's memory is let go: kept, a few of them would be all that there is.
    if (item->block.buffer.capacity() > largest_bytes_) *item = work_item();
    const std::scoped_lock lock(mutex_);
    free_.push_back(item);
  }

 private:
  std::size_t largest_bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<work_item>> all_;
  std::vector<work_item*> free_;
};

std::vector<std::filesystem::path> output_prefixes(const run_options& options) {
  std::vector<std::filesystem::path> prefixes;
  for (const std::string& key : options.keys) {
    if (key.find('/') != key.npos || key.find('\0') != key.npos) {
      throw config_error(fmt::format(
          "--json-keys {}: a key with '/' cannot be part of the name of its output file", key));
    }
    auto prefix = options.output_prefix;
    prefix += fmt::format("_{}_document", key);
    prefixes.push_back(std::move(prefix));
  }
  return prefixes;
}

encoder_options encoder_options_of(const tokenizer::tokenizer& tokenizer,
                                   const run_options& options) {
  encoder_options out{.keys = options.keys,
                      .append_eod = std::nullopt,
                      .dtype = formats::dtype_for_vocabulary(tokenizer.vocab_size()),
                      .on_bad_record = options.on_bad_record};
  if (options.append_eod) {
    out.append_eod = tokenizer.eod();
    if (!out.append_eod) {
      throw config_error(
          "--append-eod: the tokenizer's files name no token that ends a document; --eod-token "
          "names one");
    }
  }
  return out;
}

void run_stages(const tokenizer::tokenizer& tokenizer, const encoder_options& encoding,
                const run_options& options, committer& committer, progress& progress) {
  block_reader reader(options.inputs, options.block_bytes);
  bool ended = false;
  tbb::enumerable_thread_specific<block_encoder> encoders(
      [&] { return block_encoder(tokenizer, encoding); });
  item_pool pool(options.block_bytes);

  const auto read = [&](tbb::flow_control& flow) -> work_item* {
    work_item* item = ended ? nullptr : pool.take();
    try {
      if (item != nullptr && reader.next(item->block)) return item;
    } catch (...) {
      // It travels on, so that a bad record before this place is told first, as in one thread.
      item->failure = std::current_exception();
      ended = true;
      return item;
    }
    flow.stop();
    return nullptr;
  };
  const auto encode = [&](work_item* item) {
    if (!item->failure) encoders.local().encode(item->block, item->encoded);
    return item;
  };
  const auto commit = [&](work_item* item) {
    if (item->failure) std::rethrow_exception(item->failure);
    for (const std::string& note : committer.commit(item->encoded)) progress.note(note);
    progress.update({.documents = committer.counts().documents,
                     .input_bytes = committer.input_bytes(),
                     .read_bytes = item->encoded.read_bytes});
    pool.give_back(item);
  };
  const auto in_order = tbb::filter_mode::serial_in_order;
  tbb::parallel_pipeline(
      2 * static_cast<std::size_t>(options.workers) + 2,
      tbb::make_filter<void, work_item*>(in_order, read) &
          tbb::make_filter<work_item*, work_item*>(tbb::filter_mode::parallel, encode) &
          tbb::make_filter<work_item*, void>(in_order, commit));
}

}  // namespace

run_summary run(const tokenizer::tokenizer& tokenizer, const run_options& options,
                progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  const auto prefixes = output_prefixes(options);
  expect_folder(options.output_prefix);
  for (const auto& prefix : prefixes) refuse_partial_inputs(prefix, options.inputs);
  const encoder_options encoding = encoder_options_of(tokenizer, options);
  committer committer(options.inputs, prefixes, encoding.dtype, options.on_bad_record);
  if (!options.overwrite) {
    for (const auto& prefix : prefixes) refuse_existing(prefix);
  }

  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(options.workers));
  tbb::task_arena(options.workers).execute([&] {
    run_stages(tokenizer, encoding, options, committer, progress);
  });
  committer.finish();
  progress.close();

  run_summary summary;
  summary.counts = committer.counts();
  summary.dtype = std::string(name(encoding.dtype));
  summary.input_files = options.inputs.size();
  summary.input_bytes = committer.input_bytes();
  summary.workers = options.workers;
  for (const input_file& file : options.inputs) summary.read_bytes += file.size_bytes;
  std::size_t key = 0;
  for (const dataset_writer& writer : committer.writers()) {
    summary.outputs.push_back({.prefix = prefixes[key++].string(),
                               .sequences = writer.sequence_count(),
                               .documents = writer.document_count(),
                               .tokens = writer.token_count(),
                               .bin_bytes = static_cast<std::uint64_t>(writer.token_count()) *
                                            formats::size_bytes(encoding.dtype)});
  }
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  measure_process(summary);
  return summary;
}

}  // namespace millrace::preprocess
