"""One list over several engines: a Ray Data `map_batches` over a pool of actors, one engine an actor.

    driver                                            cluster
    Fleet.stream ── Feeder ──> Desk ──> RowSource ──> EngineActor (EngineHost, Engine), one a GPU
        <────────────── results, a window at a time ──────────┘

The driver reads the list, cuts it into windows of some rows and hands them out through the Desk. Ray Data
moves each window to an engine that has room, and runs it again elsewhere when its process dies. Results come
back to the driver, whose writers are those of a local run. `Fleet` offers what a run needs of an `Engine`.
"""
