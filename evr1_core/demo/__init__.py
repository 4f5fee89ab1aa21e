"""The main job from an empty folder: films, a tiny model, a warm start, reinforcement learning, and what it learned."""
