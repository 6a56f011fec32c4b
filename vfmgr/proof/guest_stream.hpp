// SPDX-License-Identifier: Apache-2.0
// The guest's end of a stream, connected; the destructor ends both ends. One thread.
#pragma once

#include <functional>

#include "api/types/guest.hpp"
#include "vfmgr/rdma/memory.hpp"
#include "vfmgr/rdma/queue_pair.hpp"

namespace vfmgr::verify {

// Carries requests to the host: the guest plane, or any other carrier of a session.
struct StreamHost {
    std::function<Result<StreamOffer>(StreamRequest const&)> open;
    std::function<void(std::string const& stream)> close;
};

struct StreamSize {
    std::uint32_t message_bytes = 1;
    std::uint32_t depth = 1;  // outstanding requests of each queue pair
    std::uint32_t pairs = 1;
};

struct Load {
    StreamSize size;
    std::uint64_t messages = 0;  // 0: as many as `window` takes
    std::chrono::milliseconds window{500};
};

class GuestStream {
  public:
    // `endpoint` outlives the stream, which uses its device.
    [[nodiscard]] static Result<GuestStream> open(StreamHost const& host, Endpoint const& endpoint,
                                                  StreamKind kind, StreamSize const& size);
    GuestStream(GuestStream&&) = default;
    GuestStream& operator=(GuestStream&&) = delete;
    ~GuestStream();

    [[nodiscard]] StreamSize const& size() const { return size_; }
    [[nodiscard]] std::vector<QueuePair>& pairs() { return all_.pairs; }
    [[nodiscard]] ibv_pd* pd() const { return pd_; }
    [[nodiscard]] CompletionQueue& queue() { return *all_.queue; }
    // One message's memory, on this end and on the host.
    [[nodiscard]] RemoteTransfer message(std::size_t pair) const;
    // Where the host's answers arrive; for ud_echo after ud_header_bytes.
    [[nodiscard]] Sge back() const { return back_.sge(); }

  private:
    GuestStream(StreamHost host, StreamSize const& size, ibv_pd* pd, RegisteredMemory memory,
                RegisteredMemory back, QueuePairs all)
        : host_(std::move(host)),
          size_(size),
          pd_(pd),
          memory_(std::move(memory)),
          back_(std::move(back)),
          all_(std::move(all)) {}

    StreamHost host_;
    StreamSize size_;
    StreamOffer offer_;
    ibv_pd* pd_;  // the endpoint's
    RegisteredMemory memory_, back_;
    QueuePairs all_;
};

}  // namespace vfmgr::verify
