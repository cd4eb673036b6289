// SPDX-License-Identifier: Apache-2.0
#include "run/stages.hpp"

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include "input/span_reader.hpp"
#include "process/stop_flag.hpp"
#include "record/giant_record.hpp"

namespace millrace::preprocess {
namespace {

/// What travels down the pipeline: a block and what became of it.
struct work_item {
  byte_block block;
  encoded_block encoded;
  std::exception_ptr failure;  // of reading; the last stage throws it on
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

bool is_stopped(const run_options& options) {
  return options.stop != nullptr && options.stop->load() != 0;
}

/// Looks every now and then whether the run is to stop, for a reader that waits for a pipe cannot.
class stop_watch {
 public:
  stop_watch(const run_options& options, block_source& source)
      : thread_([&options, &source](const std::stop_token& ended) {
          while (!ended.stop_requested() && !is_stopped(options)) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          }
          if (!ended.stop_requested()) source.cancel();
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace

bool run_stages(const tokenizer::tokenizer& tokenizer, const encoder_options& encoding,
                const run_options& options, const read_range& range, committer& committer,
                stage_clock& clock, const std::function<void(const stage_report&)>& after_commit) {
  read_limits limits = options.limits;
  limits.stop = options.stop;
  block_source source(options.inputs, range, limits);
  std::optional<stop_watch> watch;
  if (options.stop != nullptr) watch.emplace(options, source);
  bool ended = false;
  bool stopped = false;    // of the reader
  bool abandoned = false;  // of the committer: a line was, so nothing behind it has its turn
  encoder_options until_stop = encoding;
  until_stop.stop = options.stop;
  tbb::enumerable_thread_specific<block_encoder> encoders(
      [&] { return block_encoder(tokenizer, until_stop); });
  item_pool pool(options.limits.block_bytes);
  std::atomic<std::int64_t> in_flight = 0;
  using stage = stage_clock::stage;

  const auto read = [&](tbb::flow_control& flow) -> work_item* {
    work_item* item = ended || is_stopped(options) ? nullptr : pool.take();
    const auto timed = clock.time(stage::read);
    try {
      const bool more = item != nullptr && source.next(item->block);
      stopped = is_stopped(options);
      if (more && !stopped) {
        ++in_flight;
        return item;
      }
    } catch (...) {
      stopped = is_stopped(options);
      if (stopped) {
        flow.stop();
        return nullptr;
      }
      // It travels on, so that a bad record before this place is told first, as in one thread.
      item->failure = std::current_exception();
      ended = true;
      return item;
    }
    flow.stop();
    return nullptr;
  };
  const auto encode = [&](work_item* item) {
    if (item->failure) return item;
    try {
      {
        const auto timed = clock.time(stage::read_spans);
        read_span(item->block, limits);
      }
      const auto timed = clock.time(stage::encode);
      encoders.local().encode(item->block, item->encoded);
    } catch (...) {
      item->failure = std::current_exception();
    }
    return item;
  };
  const giant_options giant{.keys = encoding.keys,
                            .append_eod = encoding.append_eod,
                            .sentences = encoding.sentences,
                            .tokenizer_bytes = encoding.tokenizer_bytes,
                            .workers = options.workers,
                            .clock = &clock};
  const auto commit_giant = [&](const work_item& item) {
    const giant_line& line = *item.block.giant;
    return committer.commit(item.block.input, line, [&](id_sink& ids, record_counts& counts) {
      return encode_giant_record(
          {*line.file, line.path, line.begin, line.end, options.stop}, giant, tokenizer,
          [&]() -> tokenizer::encoder& { return encoders.local().encoder(); }, ids, counts);
    });
  };
  const auto commit_item = [&](work_item* item) {
    if (item->failure) std::rethrow_exception(item->failure);
    stage_report report;
    {
      const auto timed = clock.time(stage::write);
      report.notes = committer.commit(item->encoded);
    }
    report.giant = item->block.giant.has_value();
    if (report.giant) {
      try {
        for (auto& note : commit_giant(*item)) report.notes.push_back(std::move(note));
      } catch (const line_abandoned&) {
        abandoned = true;  // and what came before it is told: nobody will tell it again
      }
    }
    report.read_bytes = item->encoded.read_bytes;
    report.blocks_in_flight = --in_flight;
    after_commit(report);
    pool.give_back(item);
  };
  const auto commit = [&](work_item* item) {
    if (abandoned) return;
    try {
      commit_item(item);
    } catch (const line_abandoned&) {
      abandoned = true;  // before it was read to its end
    }
  };
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(options.workers));
  const auto in_order = tbb::filter_mode::serial_in_order;
  tbb::task_arena(options.workers).execute([&] {
    tbb::parallel_pipeline(
        options.most_blocks(),
        tbb::make_filter<void, work_item*>(in_order, read) &
            tbb::make_filter<work_item*, work_item*>(tbb::filter_mode::parallel, encode) &
            tbb::make_filter<work_item*, void>(in_order, commit));
  });
  return !stopped && !abandoned;
}

}  // namespace millrace::preprocess
