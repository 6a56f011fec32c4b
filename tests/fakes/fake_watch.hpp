// SPDX-License-Identifier: Apache-2.0
// A watch of FakeEtcd. Its state is the cluster's, which ends it; the object is its reader's.
#pragma once

#include "tests/fakes/fake_etcd.hpp"

namespace vfmgr::fleet {

struct FakeWatchState {
    WatchFrom from;
    Revision next = 0;  // the first that is not delivered
    std::optional<Error> ended;
    bool life = false;  // a sign of it is to be delivered
};

class FakeWatch final : public Watch {
  public:
    FakeWatch(FakeEtcd& client, std::shared_ptr<FakeWatchState> state)
        : client_(client), state_(std::move(state)) {}
    ~FakeWatch() override;
    FakeWatch(FakeWatch const&) = delete;
    FakeWatch& operator=(FakeWatch const&) = delete;

    [[nodiscard]] Result<std::optional<WatchBatch>> next(Deadline deadline) override;
    void end() override;

  private:
    [[nodiscard]] std::optional<WatchBatch> deliver();

    FakeEtcd& client_;
    std::shared_ptr<FakeWatchState> state_;  // guarded by the cluster's mutex
};

}  // namespace vfmgr::fleet
