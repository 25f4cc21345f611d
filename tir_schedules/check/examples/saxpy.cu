// The shortest check: a launch, its arguments and what is right stand in comments.
// check: --kernel saxpy --let n=1000 --grid cdiv(n,256) --block 256
// check: --arg a=2 --arg x=f32[n] --arg y=f32[n] --expect y='a*x + y'
__global__ void saxpy(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
