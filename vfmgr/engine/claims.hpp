// SPDX-License-Identifier: Apache-2.0
// Decides who may go on, and when: claims on what an operation changes, places for operations,
// turns of clients, and the gate of kernel steps. Any thread.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/os/handle.hpp"
#include "api/types/addresses.hpp"
#include "api/types/attachment.hpp"
#include "api/types/problem.hpp"

namespace vfmgr {

// Conflicting operations queue, others run in parallel: an operation claims what it changes. Any
// thread; take() blocks.

struct VmKey {
    std::string uuid;
    auto operator<=>(VmKey const&) const = default;
};
struct RdmaLinkKey {
    std::string name;
    auto operator<=>(RdmaLinkKey const&) const = default;
};
struct NetdevKey {
    std::string ifname;
    auto operator<=>(NetdevKey const&) const = default;
};
// In the order of claims: PF, VF, VM; then an RDMA link and its netdev.
using ClaimKey = std::variant<PciAddress, VfId, VmKey, RdmaLinkKey, NetdevKey>;
using ClaimKeys = std::set<ClaimKey>;
[[nodiscard]] std::string to_string(ClaimKey const& key);  // "pf 0000:01:00.0", "vm UUID"
// What is claimed to change the attachment: its PF, and its VM unless the holder is external.
[[nodiscard]] ClaimKeys claims_on(Attachment const& attachment);

class Claims {
  public:
    // `freed` is called after keys became free, on the thread that freed them.
    explicit Claims(std::function<void()> freed = [] {}) : notify_freed_(std::move(freed)) {}

    // Takes all keys at once: no thread waits while it holds some. What holds them must not outlive
    // this object.
    [[nodiscard]] Held take(ClaimKeys keys);
    // The same; nullopt: `give_up` returned true first. It is asked at once, whenever keys become
    // free, and after look_again().
    [[nodiscard]] std::optional<Held> take(ClaimKeys keys, std::function<bool()> const& give_up);
    void look_again();
    // For the observer: a key that was claimed at any time since the observation began may have
    // been observed half done.
    void observation_begins();
    [[nodiscard]] ClaimKeys taken_meanwhile() const;

  private:
    void free(ClaimKeys const& keys);
    std::function<void()> const notify_freed_;
    mutable std::mutex mutex_;
    std::condition_variable freed_;
    ClaimKeys taken_;
    ClaimKeys meanwhile_;
};

// Limits how many operations run at once. Operations that wait for a guest are counted apart, with
// a share for each VM. Operations that detach a VF have places that no other operation can take.
// Any thread.

struct PlaceLimits {
    std::size_t changing_max = 64;
    std::size_t detaching_max = 64;
    std::size_t waiting_max = 256;
    std::size_t waiting_of_a_vm_max = 16;
};

// What an operation does on the host, and which VM's guest it waits for.
struct PlaceRequest {
    enum class Work { none, changes, detaches };
    Work work = Work::changes;
    std::optional<std::string> vm{};  // UUID
};

class Places {
  public:
    explicit Places(PlaceLimits limits = {}) : limits_(limits) {}

    // Takes all places that the operation will need, so that it is not refused half-way.
    [[nodiscard]] Result<void> enter(std::string const& operation, PlaceRequest const& desired);
    // rest() frees the operation's working place while it waits for its guest. resume() takes one
    // again, also beyond the limit.
    void rest(std::string const& operation);
    void resume(std::string const& operation);
    void leave(std::string const& operation);

  private:
    void set_work(std::string const& operation, PlaceRequest::Work work);
    PlaceLimits const limits_;
    std::mutex mutex_;
    std::map<std::string, PlaceRequest> taken_;  // by operation; mutex_
};

// Queues tasks of many clients: each client has a bounded queue of its own, and the queues are
// served round robin. A value; not synchronised.

struct FairQueueLimits {
    std::size_t each = 32;  // tasks of one client
    std::size_t all = 512;  // tasks of all; beyond it, a client without any may still add one
    std::size_t turn = 8;   // tasks taken at once, from as many clients
};

template <class Task>
class FairQueue {
  public:
    explicit FairQueue(FairQueueLimits limits = {}) : limits_(limits) {}

    [[nodiscard]] bool empty() const { return waiting_.empty(); }

    // False when the client's queue is full.
    [[nodiscard]] bool offer(std::string const& client, Task task) {
        auto const found = waiting_.find(client);
        auto const waiting = found == waiting_.end() ? 0 : found->second.size();
        if (waiting >= (count_ < limits_.all ? limits_.each : 1)) return false;
        if (waiting == 0) turns_.push_back(client);
        waiting_[client].push_back(std::move(task));
        ++count_;
        return true;
    }

    // Takes the oldest task of each of the next clients.
    [[nodiscard]] std::vector<Task> take() {
        std::vector<Task> taken;
        for (auto clients = std::min(limits_.turn, turns_.size()); clients > 0; --clients) {
            auto client = std::move(turns_.front());
            turns_.pop_front();
            auto const queue = waiting_.find(client);
            taken.push_back(std::move(queue->second.front()));
            queue->second.pop_front();
            --count_;
            if (queue->second.empty())
                waiting_.erase(queue);
            else
                turns_.push_back(std::move(client));
        }
        return taken;
    }

  private:
    FairQueueLimits limits_;
    std::map<std::string, std::deque<Task>> waiting_;
    std::deque<std::string> turns_;  // clients with tasks, the next first
    std::size_t count_ = 0;
};

// Clients' requests to cancel operations. An operation looks where it can stop. Any thread.

class Cancellations {
  public:
    void begin(std::string const& operation);  // it can be cancelled from now on
    void end(std::string const& operation);
    bool request(std::string const& operation);  // false: it has ended, or was never begun
    [[nodiscard]] bool requested(std::string const& operation) const;

  private:
    mutable std::mutex mutex_;
    std::map<std::string, bool> underway_;  // whether it is to stop; mutex_
};

// Makes a stop fall between two kernel steps, never inside one. Owned by the engine; any thread.

class StepGate {
  public:
    // To be held during a step. Waits while the gate is shut.
    [[nodiscard]] Held enter();
    void shut();  // returns when no step is running
    void open();

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t underway_ = 0;
    bool shut_ = false;
};

}  // namespace vfmgr
