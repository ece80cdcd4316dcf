#include "oasr/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace oasr {
namespace {

using Task = std::function<void(std::ptrdiff_t)>;

class Pool {
 public:
  explicit Pool(int threads) : threads_(threads) {}

  int threads() const { return threads_; }

  void resize(int threads) {
    if (threads == threads_) return;  // the common case, without waiting for a run of another thread
    const std::lock_guard<std::mutex> caller(callers_);
    stop_workers();
    threads_ = threads;
  }

  void run(std::ptrdiff_t items, const Task& task) {
    const std::lock_guard<std::mutex> caller(callers_);
    start_workers();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      // By address: nobody uses it any more when this function returns.
      task_ = &task;
      items_ = items;
      next_ = 0;
      error_ = nullptr;
      busy_ = workers_.size();
      ++round_;
    }
    wake_.notify_all();
    work();
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void start_workers() {
    while (static_cast<int>(workers_.size()) < threads_ - 1) {
      // The round is read here and not in the worker: by the time it starts, the next round may have begun.
      workers_.emplace_back([this, seen = round_] { serve(seen); });
    }
  }

  void stop_workers() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (auto& worker : workers_) worker.join();
    workers_.clear();
    // Without the lock: no worker is left.
    stop_ = false;
  }

  void serve(std::uint64_t seen) {
    for (;;) {
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [&] { return stop_ || round_ != seen; });
        if (stop_) return;
        seen = round_;
      }
      work();
      const std::lock_guard<std::mutex> lock(mutex_);
      if (--busy_ == 0) done_.notify_one();
    }
  }

  void work() {
    // Task and number of items are read without the lock: they were set under it, before the round was announced.
    for (std::ptrdiff_t item; (item = next_.fetch_add(1)) < items_;) {
      try {
        (*task_)(item);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!error_) error_ = std::current_exception();
      }
    }
  }

  std::atomic<int> threads_;
  std::vector<std::thread> workers_;
  std::mutex callers_;  // held for a whole run: one caller at a time
  std::mutex mutex_;    // guards what follows
  std::condition_variable wake_, done_;
  const Task* task_ = nullptr;
  std::ptrdiff_t items_ = 0;
  std::size_t busy_ = 0;
  std::uint64_t round_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
  std::atomic<std::ptrdiff_t> next_{0};
};

// Never destroyed: at exit its workers sleep on it, and in the child of a fork the parent's pool may have been
// locked by a thread that no longer exists, so the child gets a new one and forgets the old.
Pool*& pool() {
  static Pool* instance = [] {
#if defined(__unix__) || defined(__APPLE__)
    pthread_atfork(nullptr, nullptr, [] { pool() = new Pool(pool()->threads()); });
#endif
    return new Pool(1);
  }();
  return instance;
}

}  // namespace

int threads() { return pool()->threads(); }

void set_threads(int n) { pool()->resize(std::max(1, n)); }

void parallel_for(std::ptrdiff_t items, const Task& task) {
  if (items > 1 && pool()->threads() > 1) return pool()->run(items, task);
  for (std::ptrdiff_t item = 0; item < items; ++item) task(item);
}

}  // namespace oasr
