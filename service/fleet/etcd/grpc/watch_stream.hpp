// SPDX-License-Identifier: Apache-2.0
// The stream of one watch. Internal to etcd/. Owned by the thread that pulls; end() from any.
#pragma once

#include <memory>
#include <vector>

#include "service/fleet/etcd/grpc/connections.hpp"
#include "service/fleet/etcd/grpc/messages.hpp"

namespace vfmgr::fleet {

class WatchStream final : public Watch {
  public:
    WatchStream(Connection connection, EtcdPaces const& paces, WireKeys keys);
    ~WatchStream() override;
    WatchStream(WatchStream const&) = delete;
    WatchStream& operator=(WatchStream const&) = delete;

    // Returns once etcd has begun to watch.
    [[nodiscard]] Result<void> begin(WatchFrom const& from, Deadline deadline);
    [[nodiscard]] Result<std::optional<WatchBatch>> next(Deadline deadline) override;
    void end() override;

  private:
    enum class Tag : std::uintptr_t { started = 1, written, read, finished };

    // Waits for one thing and handles it; false if the deadline passed.
    bool wait(Deadline deadline);
    void happened(Tag which, bool fine);
    void received();
    void cancelled();
    void alive();
    void silent();
    void finish(Error error);
    [[nodiscard]] EtcdCall call() const { return {"Watch", connection_.endpoint}; }

    Connection const connection_;
    EtcdPaces const paces_;
    WireKeys const keys_;
    grpc::ClientContext context_;
    grpc::CompletionQueue queue_;  // what next() waits on
    std::unique_ptr<pb::Watch::Stub> stub_;
    std::unique_ptr<grpc::ClientAsyncReaderWriter<pb::WatchRequest, pb::WatchResponse>> stream_;
    pb::WatchRequest create_;
    pb::WatchRequest progress_;
    pb::WatchResponse response_;
    grpc::Status status_;
    bool writing_ = true;  // at first the creation
    bool finishing_ = false;
    bool created_ = false;
    bool asked_ = false;  // for a sign of life
    Deadline due_;        // of the next sign of life
    WatchBatch part_;     // of an answer whose other fragments are still to come
    std::vector<WatchBatch> batches_;
    std::optional<Error> ended_;
};

}  // namespace vfmgr::fleet
