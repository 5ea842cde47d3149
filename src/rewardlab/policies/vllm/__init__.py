"""vLLM as what samples a policy's replies: in this process, or on a server."""
